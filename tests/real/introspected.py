# SPDX-License-Identifier: Apache-2.0
"""PyGObject without a class of its own: nothing but introspection calls GLib.  Prints its counts."""
from gi.repository import GLib

counts = {'idle': 0, 'timeout': 0}
loop = GLib.MainLoop()


def on_idle():
	counts['idle'] += 1
	return counts['idle'] < 50


def on_timeout():
	counts['timeout'] += 1
	if counts['timeout'] == 20:
		loop.quit()
	return counts['timeout'] < 20


GLib.idle_add(on_idle)
GLib.timeout_add(5, on_timeout)
loop.run()
print(counts)
