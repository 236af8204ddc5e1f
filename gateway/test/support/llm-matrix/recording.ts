import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

/** Outcomes by row and column of a table. */
export type Table = Record<string, Record<string, string>>

/** Tables by API of clients. */
export type Recording = { calls: Table; features: Record<string, Table>; errors: Record<string, Table> }

/** The outcomes of the last recorded run, from which the documentation is generated. */
const file = fileURLToPath(new URL('../../golden/llm-calls.json', import.meta.url))

const update = process.env['UPDATE_GOLDEN'] === '1'

/** The recorded outcome of plain text for clients of an API. */
export function recordedCell(api: string, label: string): string {
  return read().features?.[api]?.[label]?.['text'] ?? ''
}

function read(): Partial<Recording> {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
}

/** Compares a part of the recording; UPDATE_GOLDEN=1 writes it, to be reviewed before commit. */
export function expectRecorded<Part extends keyof Recording>(part: Part, found: Recording[Part]): void {
  const recorded = read()
  if (update) {
    recorded[part] = found
    writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`)
  }
  expect(found).toEqual(recorded[part])
}
