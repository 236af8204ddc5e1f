import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readProblem } from '../../../config/load/config-file.ts'
import type { ManifestFile } from './parse-manifest.ts'

const maxFiles = 10_000
const maxDepth = 16
const maxFileBytes = 32 * 1024 * 1024
const maxTotalBytes = 128 * 1024 * 1024
const extensions = ['.yaml', '.yml', '.json']

/** Manifests of a folder. */
export type ManifestFolder = {
  readonly files: readonly ManifestFile[]
  /** State of the folder before the files were read. */
  readonly state: FolderState
}

/** Text that changes with every change of a file, and the folders with files. */
export type FolderState = { readonly appearance: string; readonly folders: readonly string[] }

/**
 * Reads the manifests of a folder and of the folders in it, sorted by name. Hidden files are skipped, links
 * are followed: a mounted volume consists of links to a hidden folder. Throws an error with the reason.
 */
export async function readManifestFolder(folder: string): Promise<ManifestFolder> {
  const { paths, state } = await findManifests(folder)
  const files: ManifestFile[] = []
  let total = 0
  for (const name of paths) {
    const path = join(folder, name)
    const bytes = await reading(path, (path) => readFile(path))
    total += bytes.length
    refuse(path, bytes.length > maxFileBytes, 'it is larger than 32 MiB')
    refuse(folder, total > maxTotalBytes, 'its files are larger than 128 MiB')
    const text = await reading(path, async () => new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    files.push({ name, text })
  }
  return { files, state }
}

/** State of a folder, without reading its files. Throws an error with the reason. */
export async function readFolderState(folder: string): Promise<FolderState> {
  return (await findManifests(folder)).state
}

async function findManifests(folder: string): Promise<{ paths: readonly string[]; state: FolderState }> {
  const found: Finding = { files: new Map(), folders: new Set(), seen: new Set() }
  await find(folder, '', found)
  const entries = [...found.files].sort(([one], [other]) => (one < other ? -1 : 1))
  const paths = entries.map(([path]) => path)
  return { paths, state: { appearance: JSON.stringify(entries), folders: [...found.folders] } }
}

type Finding = {
  /** Identity, size and times of each file by its path. */
  readonly files: Map<string, string>
  readonly folders: Set<string>
  readonly seen: Set<string>
}

async function find(folder: string, inside: string, found: Finding, depth = 0): Promise<void> {
  const here = join(folder, inside)
  const target = await reading<string>(here, (path) => realpath(path))
  // Links may form a cycle.
  if (found.seen.has(target)) return
  found.seen.add(target)
  found.folders.add(here)
  refuse(here, depth > maxDepth, `folders must be at most ${maxDepth} levels deep`)
  for (const name of await reading<string[]>(here, (path) => readdir(path))) {
    if (name.startsWith('.')) continue
    const path = join(inside, name)
    const status = await reading(join(folder, path), (path) => stat(path, { bigint: true }))
    if (status.isDirectory()) await find(folder, path, found, depth + 1)
    else if (status.isFile() && extensions.some((extension) => name.endsWith(extension))) {
      refuse(join(folder, path), status.size > maxFileBytes, 'it is larger than 32 MiB')
      const { dev, ino, size, mtimeNs, ctimeNs } = status
      found.files.set(path, [dev, ino, size, mtimeNs, ctimeNs].join(' '))
    }
    refuse(folder, found.files.size > maxFiles, `it must contain at most ${maxFiles} files`)
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
