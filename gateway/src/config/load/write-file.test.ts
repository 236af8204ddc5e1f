import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as nodeFiles from 'node:fs/promises'
import {
  chmod,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Files, writeFileAtomically } from './write-file.ts'

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-write-'))
  file = join(folder, 'config.yaml')
  await writeFile(file, 'a: 1\n')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const expected = 'a: 1\n'

describe('writeFileAtomically', () => {
  it('replaces the text and leaves no other file', async () => {
    expect(await writeFileAtomically(file, 'a: 2\n', { expected })).toEqual({ kind: 'written' })
    expect(await readFile(file, 'utf8')).toBe('a: 2\n')
    expect(await readdir(folder)).toEqual(['config.yaml'])
  })

  it('retains the mode', async () => {
    await chmod(file, 0o640)
    await writeFileAtomically(file, 'a: 2\n', { expected })
    expect((await stat(file)).mode & 0o7777).toBe(0o640)
  })

  it.runIf(process.getuid?.() === 0)('keeps the owner', async () => {
    await nodeFiles.chown(file, 12_345, 12_346)
    await writeFileAtomically(file, 'a: 2\n', { expected })
    expect(await stat(file)).toMatchObject({ uid: 12_345, gid: 12_346 })
  })

  it('never overwrites a change of another process', async () => {
    await writeFile(file, 'a: 1 # by hand\n')
    expect(await writeFileAtomically(file, 'a: 2\n', { expected })).toEqual({ kind: 'changed' })
    expect(await readFile(file, 'utf8')).toBe('a: 1 # by hand\n')
  })

  it('detects a change during the write', async () => {
    const files = failing({
      async open(path, flags, mode) {
        if (flags === 'wx') await writeFile(file, 'by hand\n')
        return nodeFiles.open(path, flags, mode)
      },
    })
    expect(await writeFileAtomically(file, 'a: 2\n', { expected, files })).toEqual({ kind: 'changed' })
    expect(await readFile(file, 'utf8')).toBe('by hand\n')
    expect(await readdir(folder)).toEqual(['config.yaml'])
  })

  it('retains a byte order mark that reading removed', async () => {
    await writeFile(file, '\uFEFFa: 1\n')
    expect(await writeFileAtomically(file, 'a: 2\n', { expected })).toEqual({ kind: 'written' })
    expect(await readFile(file, 'utf8')).toBe('\uFEFFa: 2\n')
    expect(await writeFileAtomically(file, '\uFEFFa: 3\n', { expected: '\uFEFFa: 2\n' })).toEqual({
      kind: 'written',
    })
    expect(await readFile(file, 'utf8')).toBe('\uFEFFa: 3\n')
  })

  it('replaces the target of symbolic links through several folders, and retains the links', async () => {
    const other = await mkdtemp(join(tmpdir(), 'tollgate-write-'))
    await symlink(file, join(other, 'second'))
    await symlink('second', join(other, 'first'))
    await chmod(file, 0o600)
    expect(await writeFileAtomically(join(other, 'first'), 'a: 2\n', { expected })).toEqual({
      kind: 'written',
    })
    expect(await readFile(file, 'utf8')).toBe('a: 2\n')
    expect((await lstat(file)).isFile()).toBe(true)
    expect(await readlink(join(other, 'first'))).toBe('second')
    expect((await readdir(other)).sort()).toEqual(['first', 'second'])
    await rm(other, { recursive: true })
  })

  it('refuses a file that is read-only, although its folder is not', async () => {
    await chmod(file, 0o444)
    const result = await writeFileAtomically(file, 'a: 2\n', { expected })
    expect(result).toEqual({
      kind: 'refused',
      message: `cannot write the configuration file ${file}: it is read-only`,
    })
    expect(await readFile(file, 'utf8')).toBe(expected)
  })

  it('reports a missing file', async () => {
    expect(await writeFileAtomically(join(folder, 'no.yaml'), '', { expected })).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('there is no such file'),
    })
  })

  it('refuses a path that is not a regular file', async () => {
    expect(await writeFileAtomically(folder, '', { expected })).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('it is not a regular file'),
    })
  })

  it('refuses a text that is too large to read', async () => {
    const text = `#${'x'.repeat(32 * 1024 * 1024)}`
    expect(await writeFileAtomically(file, text, { expected })).toMatchObject({ kind: 'refused' })
    expect(await readFile(file, 'utf8')).toBe(expected)
  })

  it.each([
    ['rename', 'EBUSY', 'it is a mount point and cannot be replaced; mount its folder instead'],
    ['rename', 'EACCES', 'permission denied for the file or its folder'],
    ['open', 'EROFS', 'it is on a read-only file system'],
    ['open', 'EACCES', 'permission denied for the file or its folder'],
    ['access', 'EACCES', 'permission denied for the file or its folder'],
    ['writeFile', 'ENOSPC', 'there is no space left on its disk'],
    ['sync', 'EIO', 'the disk reports an error'],
    ['sync', 'EDQUOT', 'there is no space left on its disk'],
    [
      'chown',
      'EPERM',
      'the new file cannot have the owner and mode of the old one; the user of the gateway must own it',
    ],
    [
      'chmod',
      'EPERM',
      'the new file cannot have the owner and mode of the old one; the user of the gateway must own it',
    ],
  ])('leaves the old file whole and no other when %s fails with %s', async (call, code, message) => {
    const error = Object.assign(new Error(code), { code })
    const fail = () => Promise.reject(error)
    const open: Files['open'] = async (path, flags, mode) => {
      const handle = await nodeFiles.open(path, flags, mode)
      if (call === 'writeFile') {
        // Part of the text is there when the disk is full.
        handle.writeFile = async () => {
          await handle.write('a:')
          return fail()
        }
      }
      if (call === 'sync') handle.sync = fail
      if (call === 'chmod') handle.chmod = fail
      if (call === 'chown') {
        const made = await handle.stat()
        Object.assign(handle, { stat: async () => ({ ...made, uid: made.uid + 1 }), chown: fail })
      }
      return handle
    }
    const files = failing(['rename', 'open', 'access'].includes(call) ? { [call]: fail } : { open })
    expect(await writeFileAtomically(file, 'a: 2\n', { expected, files })).toEqual({
      kind: 'refused',
      message: `cannot write the configuration file ${file}: ${message}`,
    })
    expect(await readFile(file, 'utf8')).toBe(expected)
    expect(await readdir(folder)).toEqual(['config.yaml'])
  })

  it('succeeds if the file system cannot sync a folder', async () => {
    const open: Files['open'] = async (path, flags, mode) => {
      if (flags === 'r') throw Object.assign(new Error('EINVAL'), { code: 'EINVAL' })
      return nodeFiles.open(path, flags, mode)
    }
    const files = failing({ open })
    expect(await writeFileAtomically(file, 'a: 2\n', { expected, files })).toEqual({ kind: 'written' })
  })

  it('rethrows unknown errors', async () => {
    const files = failing({ rename: () => Promise.reject(new TypeError('no')) })
    await expect(writeFileAtomically(file, 'a: 2\n', { expected, files })).rejects.toThrow('no')
  })

  it('accepts only one of two writers that expect the same text', async () => {
    const results = []
    for (const text of ['b: 1\n', 'c: 1\n']) results.push(await writeFileAtomically(file, text, { expected }))
    expect(results).toEqual([{ kind: 'written' }, { kind: 'changed' }])
    expect(await readFile(file, 'utf8')).toBe('b: 1\n')
  })

  it('leaves temporary files of other configurations, and similar names, unchanged', async () => {
    await writeFile(join(folder, '.tollgate-0123456789-0123456789-1-a-b.tmp'), '')
    await writeFile(join(folder, 'config.yaml.tmp'), '')
    await writeFileAtomically(file, 'a: 2\n', { expected })
    expect(await readdir(folder)).toHaveLength(3)
  })

  it('survives a kill at any moment, and the next write removes leftovers', { timeout: 60_000 }, async () => {
    const texts = [0, 1].map((number) => `a: ${number}\n# ${String(number).repeat(200_000)}\n`)
    const [first = ''] = texts
    await writeFile(file, first)
    let leftovers = 0
    for (let round = 0; round < 20; round++) {
      const child = startWriter(texts)
      await once(child.stdout ?? child, 'data')
      await setTimeout(Math.random() * 15)
      child.kill('SIGKILL')
      await once(child, 'exit')
      expect(texts).toContain(await readFile(file, 'utf8'))
      leftovers += (await readdir(folder)).length - 1
      const now = await readFile(file, 'utf8')
      expect(await writeFileAtomically(file, first, { expected: now })).toEqual({ kind: 'written' })
      expect(await readdir(folder)).toEqual(['config.yaml'])
    }
    // Otherwise no moment was the wrong one, and nothing was tested.
    expect(leftovers).toBeGreaterThan(0)
  })
})

function failing(some: Partial<Files>): Files {
  return { ...nodeFiles, ...some }
}

/** Writes one text after the other until it is killed. */
function startWriter(texts: readonly string[]): ChildProcess {
  const source = `
    import { writeFileAtomically } from ${JSON.stringify(new URL('./write-file.ts', import.meta.url).href)}
    const texts = ${JSON.stringify(texts)}
    console.log('ready')
    for (let at = 0; ; at = 1 - at) {
      const result = await writeFileAtomically(${JSON.stringify(file)}, texts[1 - at], { expected: texts[at] })
      if (result.kind !== 'written') throw new Error(JSON.stringify(result))
    }`
  return spawn(process.execPath, ['--input-type=module'], { stdio: ['pipe', 'pipe', 'inherit'] }).on(
    'spawn',
    function (this: ChildProcess) {
      this.stdin?.end(source)
    },
  )
}
