import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Source texts by path. Paths use forward slashes. */
export type Sources = ReadonlyMap<string, string>

/** The files of a folder of the repository that match a pattern, with paths relative to the folder. */
export function readSources(folder: string, pattern = '**/*.ts'): Sources {
  const cwd = fileURLToPath(new URL(`../../../${folder}/`, import.meta.url))
  const paths = globSync(pattern, { cwd }).map((path) => path.replaceAll('\\', '/'))
  return new Map(paths.sort().map((path) => [path, readFileSync(cwd + path, 'utf8')]))
}

export function isTest(path: string): boolean {
  return /\.(test|bench)\.ts$/.test(path)
}
