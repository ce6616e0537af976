/* SPDX-License-Identifier: Apache-2.0 */
/* The library that dlclose_storm loads. */
__attribute__((visibility("default"))) int odd_work(int n);

int odd_work(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum = sum + 1;
	return sum;
}
