/* SPDX-License-Identifier: Apache-2.0 */
/* The same of C++: exceptions, destructors that run while they pass, virtual functions, std::sort. */
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "work.h"

namespace
{
volatile unsigned sink;

struct Guard {
	unsigned value;
	explicit Guard(unsigned v) : value(v)
	{
	}
	~Guard()
	{
		for (unsigned i = 0; i < 20; i++)
			sink = sink * 31 + value;
	}
};

struct Shape {
	virtual ~Shape() = default;
	virtual unsigned area(unsigned depth) const = 0;
};

struct Nested : Shape {
	unsigned area(unsigned depth) const override
	{
		Guard guard(depth);

		if (depth == 0)
			throw std::runtime_error("deep enough");
		return area(depth - 1) + guard.value;
	}
};

__attribute__((noinline)) unsigned thrown(const Shape &shape, unsigned depth)
{
	try {
		return shape.area(depth);
	} catch (const std::runtime_error &error) {
		return static_cast<unsigned>(std::string(error.what()).size());
	}
}

__attribute__((noinline)) unsigned sorted(unsigned seed)
{
	std::vector<std::string> texts;
	std::function<bool(const std::string &, const std::string &)> less =
		[](const std::string &a, const std::string &b) { return a < b; };

	for (unsigned i = 0; i < 40; i++)
		texts.push_back(std::to_string(seed = seed * 1103515245 + 12345));
	std::sort(texts.begin(), texts.end(), less);
	return static_cast<unsigned>(texts[0].size());
}
} // namespace

unsigned work(unsigned seed)
{
	return thrown(Nested(), seed % 16) + sorted(seed);
}
