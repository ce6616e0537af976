# SPDX-License-Identifier: Apache-2.0
"""PyGObject, with a window if there is a display: counts its own callbacks; prints the counts.

	gtk_program.py [window]
"""
import sys

import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib  # noqa: E402

counts = {'source': 0, 'idle': 0, 'timeout': 0, 'allocated': 0, 'loaded': 0}
loop = GLib.MainLoop()


class Own(GLib.Source):
	def prepare(self):
		return counts['source'] < 20, -1

	def check(self):
		return counts['source'] < 20

	def dispatch(self, callback, args):
		counts['source'] += 1
		return counts['source'] < 20


def on_idle():
	counts['idle'] += 1
	return counts['idle'] < 50


def on_timeout():
	counts['timeout'] += 1
	if counts['timeout'] < 20 or not counts['loaded']:
		return True
	loop.quit()
	return False


def on_loaded(file, result):
	file.load_contents_finish(result)
	counts['loaded'] += 1


def show_window():
	gi.require_version('Gtk', '3.0')
	from gi.repository import Gtk

	def on_allocate(*_):
		counts['allocated'] += 1

	window = Gtk.Window(title='test')
	label = Gtk.Label(label='hello')
	window.add(label)
	label.connect('size-allocate', on_allocate)
	window.show_all()
	GLib.timeout_add(5, lambda: label.queue_resize() or counts['timeout'] < 19)


def main():
	if sys.argv[1:] == ['window']:
		show_window()
	own = Own()
	own.attach()
	GLib.idle_add(on_idle)
	GLib.timeout_add(5, on_timeout)
	Gio.File.new_for_path(__file__).load_contents_async(None, on_loaded)
	loop.run()
	own.destroy()
	assert counts['allocated'] > 0 or sys.argv[1:] == []
	print([counts[name] for name in ('source', 'idle', 'loaded')])


main()
