import { mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createJournal, openSpoolFile } from './journal.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'journal-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const head = (number: number) => ({ first: number, number, rows: 1 })

function spoolFiles(): string[] {
  return readdirSync(folder).map((name) => join(folder, name))
}

describe('the journal', () => {
  it('stores records until they are removed', () => {
    const journal = createJournal(folder, 'a')
    const one = journal.append(head(1), Buffer.from('one'))
    const two = journal.append(head(2), Buffer.from('two'))
    expect(one.read().toString()).toBe('one')
    const [path = ''] = spoolFiles()
    expect(openSpoolFile(path).records.map(({ number }) => number)).toEqual([1, 2])
    one.remove()
    two.remove()
    expect(journal.bytes()).toBe(0)
    journal.close()
    expect(spoolFiles()).toEqual([])
  })

  it('reads payloads beyond its cache from the file', () => {
    const journal = createJournal(folder, 'a')
    const payloads = Array.from({ length: 5 }, (_, index) => Buffer.alloc(3 * 1024 * 1024, index))
    const stored = payloads.map((payload, index) => journal.append(head(index + 1), payload))
    expect(stored.every(({ read }, index) => read().equals(payloads[index] ?? Buffer.alloc(0)))).toBe(true)
    expect(spoolFiles().length).toBeGreaterThan(1)
    for (const { remove } of stored) remove()
    journal.close()
    expect(spoolFiles()).toEqual([])
  })

  it('retains files with records when it closes', () => {
    const journal = createJournal(folder, 'a')
    journal.append(head(1), Buffer.from('one'))
    journal.close()
    const [path = ''] = spoolFiles()
    const { records } = openSpoolFile(path)
    expect(records.map(({ read }) => read().toString())).toEqual(['one'])
    for (const { remove } of records) remove()
    expect(spoolFiles()).toEqual([])
  })

  it('continues in a new file after another process has removed the current one', () => {
    const journal = createJournal(folder, 'a')
    const stored = journal.append(head(1), Buffer.from('one'))
    for (const path of spoolFiles()) rmSync(path)
    journal.checkFile()
    expect(stored.read().toString()).toBe('one')
    journal.append(head(2), Buffer.from('two'))
    const [path = ''] = spoolFiles()
    expect(openSpoolFile(path).records.map(({ number }) => number)).toEqual([2])
  })

  it('throws if its folder does not exist', () => {
    const journal = createJournal(join(folder, 'absent'), 'a')
    expect(() => journal.append(head(1), Buffer.from('one'))).toThrow('ENOENT')
  })
})

it('a spool file without its last byte has the records before', () => {
  const journal = createJournal(folder, 'a')
  for (const number of [1, 2, 3]) journal.append(head(number), Buffer.from('text'))
  journal.close()
  const [path = ''] = spoolFiles()
  truncateSync(path, journal.bytes() - 1)
  const { records, damaged } = openSpoolFile(path)
  expect(records.map(({ number }) => number)).toEqual([1, 2])
  expect(damaged).toBe(0)
})
