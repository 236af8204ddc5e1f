import { expect, it } from 'vitest'
import { describeError, isBusy } from './errors.ts'

function sqliteError(errcode: number): Error {
  return Object.assign(new Error('text of SQLite'), { code: 'ERR_SQLITE_ERROR', errcode })
}

it.each([5, 6, 5 | (1 << 8), 6 | (2 << 8)])('code %i means that another connection has the lock', (code) => {
  expect(isBusy(sqliteError(code))).toBe(true)
})

it.each([sqliteError(1), sqliteError(11), new Error('busy'), 5, undefined])('%o is not a lock', (error) => {
  expect(isBusy(error)).toBe(false)
})

it.each([
  [sqliteError(5), 'another process had the lock for too long'],
  [sqliteError(8 | (1 << 8)), 'it cannot be written: the file, its folder or its file system is read-only'],
  [sqliteError(10), 'the disk failed: text of SQLite'],
  [sqliteError(11), 'it is damaged: restore it from a backup'],
  [sqliteError(13), 'the disk is full'],
  [sqliteError(14), 'it cannot be opened: text of SQLite'],
  [sqliteError(26), 'it is not a SQLite database'],
  [sqliteError(1), 'text of SQLite'],
  ['text', 'text'],
])('the message of %o names the file and the reason', (error, reason) => {
  expect(describeError(error, '/a.db')).toBe(`the SQLite database /a.db cannot be used: ${reason}`)
})
