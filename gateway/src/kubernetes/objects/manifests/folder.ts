import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readProblem } from '../../../config/load/config-file.ts'
import type { ManifestFile } from './parse-manifest.ts'

const maxFiles = 10_000
const maxDepth = 16
const maxFileBytes = 32 * 1024 * 1024
const maxTotalBytes = 128 * 1024 * 1024
const extensions = ['.yaml', '.yml', '.json']

/**
 * Reads the manifests of a folder and of the folders in it, sorted by name. Hidden files are skipped, links
 * are followed: a mounted volume consists of links to a hidden folder. Throws an error with the reason.
 */
export async function readManifestFolder(folder: string): Promise<readonly ManifestFile[]> {
  const paths: string[] = []
  await find(folder, '', { paths, seen: new Set() })
  const files: ManifestFile[] = []
  let total = 0
  for (const name of paths.sort()) {
    const bytes = await reading(join(folder, name), (path) => readFile(path))
    total += bytes.length
    refuse(join(folder, name), bytes.length > maxFileBytes, 'it is larger than 32 MiB')
    refuse(folder, total > maxTotalBytes, 'its files are larger than 128 MiB')
    const text = await reading(join(folder, name), async () =>
      new TextDecoder('utf-8', { fatal: true }).decode(bytes),
    )
    files.push({ name, text })
  }
  return files
}

type Finding = { readonly paths: string[]; readonly seen: Set<string> }

async function find(folder: string, inside: string, finding: Finding, depth = 0): Promise<void> {
  const here = join(folder, inside)
  const target = await reading<string>(here, (path) => realpath(path))
  // Links may form a cycle.
  if (finding.seen.has(target)) return
  finding.seen.add(target)
  refuse(here, depth > maxDepth, `folders must be at most ${maxDepth} levels deep`)
  for (const name of await reading<string[]>(here, (path) => readdir(path))) {
    if (name.startsWith('.')) continue
    const path = join(inside, name)
    const status = await reading(join(folder, path), (path) => stat(path))
    if (status.isDirectory()) await find(folder, path, finding, depth + 1)
    else if (status.isFile() && extensions.some((extension) => name.endsWith(extension))) {
      refuse(join(folder, path), status.size > maxFileBytes, 'it is larger than 32 MiB')
      finding.paths.push(path)
    }
    refuse(folder, finding.paths.length > maxFiles, `it must contain at most ${maxFiles} files`)
  }
}

async function reading<T>(path: string, read: (path: string) => Promise<T>): Promise<T> {
  try {
    return await read(path)
  } catch (error) {
    throw new Error(`cannot read the manifests ${path}: ${readProblem(error)}`, { cause: error })
  }
}

function refuse(path: string, isRefused: boolean, reason: string): void {
  if (isRefused) throw new Error(`cannot read the manifests ${path}: ${reason}`)
}
