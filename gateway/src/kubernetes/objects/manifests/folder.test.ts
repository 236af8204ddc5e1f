import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Watcher } from '../../../config/live/watch.ts'
import { readFolderState, readManifestFolder } from './folder.ts'
import { watchManifestFolder } from './watch-folder.ts'

let folder: string
let watcher: Watcher | undefined

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifests-'))
})

afterEach(async () => {
  watcher?.close()
  watcher = undefined
  await rm(folder, { recursive: true, force: true })
})

async function write(name: string, text = name) {
  await mkdir(join(folder, name, '..'), { recursive: true })
  await writeFile(join(folder, name), text)
}

async function names(): Promise<string[]> {
  return (await readManifestFolder(folder)).files.map(({ name }) => name)
}

describe('a folder of manifests', () => {
  it('contains the files of all folders in it, sorted', async () => {
    for (const name of ['b.yaml', 'a/z.yml', 'a/b/c.json', 'README.md', '.hidden.yaml', '.git/x.yaml'])
      await write(name)
    expect(await names()).toEqual(['a/b/c.json', 'a/z.yml', 'b.yaml'])
  })

  it('may be a mounted volume, with links to a hidden folder', async () => {
    await write('..2026_01/a.yaml')
    await symlink('..2026_01', join(folder, '..data'))
    await symlink('..data/a.yaml', join(folder, 'a.yaml'))
    expect(await names()).toEqual(['a.yaml'])
  })

  it('may contain links that form a cycle', async () => {
    await write('a/b.yaml')
    await symlink('..', join(folder, 'a/up'))
    expect(await names()).toEqual(['a/b.yaml'])
  })

  it('is refused if a file is not text or the folder does not exist', async () => {
    await writeFile(join(folder, 'a.yaml'), Buffer.from([0xff, 0xfe]))
    await expect(readManifestFolder(folder)).rejects.toThrow(`${folder}/a.yaml: it is not UTF-8 text`)
    await expect(readManifestFolder(join(folder, 'none'))).rejects.toThrow('there is no such file')
  })
})

/** Watches with events only, without `pollMs`; each call of the result waits for one report. */
async function start(pollMs = 600_000): Promise<() => Promise<string>> {
  const reports: string[] = []
  const waiting: ((report: string) => void)[] = []
  const report = (entry: string) => {
    const waiter = waiting.shift()
    if (waiter === undefined) reports.push(entry)
    else waiter(entry)
  }
  watcher = watchManifestFolder(folder, {
    state: await readFolderState(folder),
    onChange: () => report('changed'),
    onError: (error) => report(error.message),
    debounceMs: 10,
    pollMs,
  })
  return () => {
    const ready = reports.shift()
    return ready === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(ready)
  }
}

describe('a watched folder of manifests', () => {
  it('reports new, changed and deleted files of all folders in it', async () => {
    await write('a/b.yaml')
    const next = await start()
    await write('a/b.yaml', 'changed')
    expect(await next()).toBe('changed')
    await write('a/new/c.yaml')
    expect(await next()).toBe('changed')
    await write('a/new/c.yaml', 'changed')
    expect(await next()).toBe('changed')
    await rm(join(folder, 'a/b.yaml'))
    expect(await next()).toBe('changed')
  })

  it('reports a change between the read and the watch', async () => {
    await write('a.yaml')
    const state = await readFolderState(folder)
    await write('a.yaml', 'changed')
    const changed = Promise.withResolvers<string>()
    watcher = watchManifestFolder(folder, {
      state,
      onChange: () => changed.resolve('changed'),
      onError: changed.reject,
      debounceMs: 10,
    })
    expect(await changed.promise).toBe('changed')
  })

  it('reports the link swap of a mounted volume', async () => {
    await write('..v1/a.yaml', 'one')
    await write('..v2/a.yaml', 'two')
    await symlink('..v1', join(folder, '..data'))
    await symlink('..data/a.yaml', join(folder, 'a.yaml'))
    const next = await start()
    await symlink('..v2', join(folder, '..new'))
    await rename(join(folder, '..new'), join(folder, '..data'))
    expect(await next()).toBe('changed')
  })

  it('reports a folder that disappears once, and its return', async () => {
    await write('a.yaml')
    const next = await start(20)
    await rename(folder, `${folder}-away`)
    expect(await next()).toContain('there is no such file')
    await rename(`${folder}-away`, folder)
    expect(await next()).toBe('changed')
  })
})
