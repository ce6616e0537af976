/* SPDX-License-Identifier: Apache-2.0 */
/* Words: a command of several words, given in one argument. */

#pragma once

/*
 * Split |text| as a shell does that expands nothing: blanks separate words, quotes of both kinds hold them together, and
 * a backslash takes the next character as it is (between double quotes before " and itself, between single ones never).
 *
 * A list that ends with NULL, to be freed as one; NULL with |*fault| why: no word, quotes that are not closed, ...
 */
char **d9__words_split(const char *text, const char **fault);
