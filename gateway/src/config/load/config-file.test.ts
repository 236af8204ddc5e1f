import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readConfigFile, rereadConfigFile } from './config-file.ts'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'config-file-'))
})

afterAll(() => {
  rmSync(folder, { recursive: true })
})

/** A new file in the folder; its path. */
function fileOf(name: string, content: string | Buffer): string {
  const file = join(folder, name)
  writeFileSync(file, content)
  return file
}

async function expectRefusal(file: string, reason: string): Promise<void> {
  const message = `cannot read the configuration file ${file}: ${reason}`
  expect(() => readConfigFile(file)).toThrow(message)
  await expect(rereadConfigFile(file)).rejects.toThrow(message)
}

it('reads a text, without its byte order mark', async () => {
  const file = fileOf('good', '\uFEFFa: é')
  expect(readConfigFile(file)).toBe('a: é')
  expect(await rereadConfigFile(file)).toBe('a: é')
})

it('reports a missing file', () => expectRefusal(join(folder, 'none'), 'there is no such file'))

it('reports a directory', () => expectRefusal(folder, 'it is a directory'))

it('reports a file that is not text', () =>
  expectRefusal(fileOf('bytes', Buffer.from([0x61, 0xff])), 'it is not UTF-8 text'))

it('refuses a file that is too large before reading it', () => {
  const file = fileOf('large', '')
  truncateSync(file, 32 * 1024 * 1024 + 1)
  return expectRefusal(file, 'it is larger than 32 MiB')
})
