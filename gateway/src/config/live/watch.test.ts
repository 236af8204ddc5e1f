import { mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Watcher, watchFile } from './watch.ts'

let folder: string
let file: string
let watcher: Watcher | undefined

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'watch-'))
  file = join(folder, 'config.yaml')
})

afterEach(async () => {
  watcher?.close()
  await rm(folder, { recursive: true })
})

/** Watches with events only, without `pollMs`; each call of `next` waits for one report. */
function start(text: string | undefined, pollMs = 600_000): () => Promise<string> {
  const reports: string[] = []
  const waiting: ((report: string) => void)[] = []
  const report = (entry: string) => {
    const waiter = waiting.shift()
    if (waiter === undefined) reports.push(entry)
    else waiter(entry)
  }
  watcher = watchFile(file, {
    onChange: report,
    onError: (error) => report(`error: ${error.message}`),
    ...(text === undefined ? {} : { text }),
    debounceMs: 10,
    pollMs,
  })
  return () => {
    const ready = reports.shift()
    return ready === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(ready)
  }
}

it('reports the first text without a text in use', async () => {
  await writeFile(file, 'one')
  expect(await start(undefined)()).toBe('one')
})

it('reports a change that happened before the watch began', async () => {
  await writeFile(file, 'two')
  expect(await start('one')()).toBe('two')
})

it('detects an in-place write, and ignores equal content', async () => {
  await writeFile(file, 'one')
  const next = start(undefined)
  expect(await next()).toBe('one')
  await writeFile(file, 'one')
  await writeFile(file, 'two')
  expect(await next()).toBe('two')
})

it('detects a replacement by a rename', async () => {
  await writeFile(file, 'one')
  const next = start(undefined)
  expect(await next()).toBe('one')
  for (const text of ['two', 'three']) {
    await writeFile(join(folder, 'new'), text)
    await rename(join(folder, 'new'), file)
    expect(await next()).toBe(text)
  }
})

it('reports a deleted file once, and its return', async () => {
  await writeFile(file, 'one')
  const next = start(undefined, 20)
  expect(await next()).toBe('one')
  await unlink(file)
  expect(await next()).toBe(`error: cannot read the configuration file ${file}: there is no such file`)
  await writeFile(file, 'one')
  expect(await next()).toBe('one')
})

it('detects the link swap of a mounted volume', async () => {
  for (const version of ['v1', 'v2', 'v3']) {
    await mkdir(join(folder, version))
    await writeFile(join(folder, version, 'config.yaml'), version)
  }
  await symlink('v1', join(folder, '..data'))
  await symlink(join('..data', 'config.yaml'), file)
  const next = start(undefined)
  expect(await next()).toBe('v1')
  for (const version of ['v2', 'v3']) {
    await symlink(version, join(folder, '..tmp'))
    await rename(join(folder, '..tmp'), join(folder, '..data'))
    expect(await next()).toBe(version)
  }
})

it('detects a change behind a link to another folder', async () => {
  await mkdir(join(folder, 'elsewhere'))
  await writeFile(join(folder, 'elsewhere', 'real.yaml'), 'one')
  await symlink(join('elsewhere', 'real.yaml'), file)
  const next = start(undefined)
  expect(await next()).toBe('one')
  await writeFile(join(folder, 'elsewhere', 'real.yaml'), 'two')
  expect(await next()).toBe('two')
})

it('detects a change in a replaced folder, by polling', async () => {
  file = join(folder, 'mount', 'config.yaml')
  await mkdir(join(folder, 'mount'))
  await writeFile(file, 'one')
  const next = start(undefined, 20)
  expect(await next()).toBe('one')
  await rename(join(folder, 'mount'), join(folder, 'old'))
  await mkdir(join(folder, 'new'))
  await writeFile(join(folder, 'new', 'config.yaml'), 'two')
  await rename(join(folder, 'new'), join(folder, 'mount'))
  let report = await next()
  if (report.startsWith('error')) report = await next()
  expect(report).toBe('two')
})

it('reports a file that is not text', async () => {
  await writeFile(file, Buffer.from([0x61, 0xff, 0xfe]))
  expect(await start(undefined)()).toBe(
    `error: cannot read the configuration file ${file}: it is not UTF-8 text`,
  )
})
