import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of all files and folders below a folder. */
export function entriesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path))
}

/** Contents of all files below a folder as one text, a character per byte. */
export function contentOf(folder: string): string {
  return entriesOf(folder)
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))
    .join('\n')
}
