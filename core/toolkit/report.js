#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// `dial9 report` itself, with all its options.

import { passToReport } from './dial9.js';
import { passOn } from './script.js';

passOn('report.js', () => passToReport(process.argv.slice(2)));
