import { afterAll, afterEach } from 'vitest'
import { endAll } from './cleanup.ts'

// Setup of every test file: files of one process share modules, which are evaluated once.

afterEach(() => endAll('test'))
afterAll(() => endAll('file'))
