import { randomBytes } from 'node:crypto'
import { mkdtempSync, type PathLike, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import * as files from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../test/support/wait.ts'
import type { Config } from '../../../config/schema.ts'
import { runToCompletion } from '../../../lib/scheduling/yielding.ts'
import { createDivider } from '../parts/parts.ts'
import { createPersistedCopy, type PersistedCopyOptions } from './persisted-copy.ts'
import type { ReceivedConfig } from './received.ts'

const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function open(options: Partial<PersistedCopyOptions> = {}) {
  const warnings: object[] = []
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'tollgate-copy-'))
  if (options.folder === undefined) folders.push(folder)
  const copy = createPersistedCopy({
    folder,
    sessionKey: 'c0'.repeat(32),
    gateway: 'infra/edge',
    files,
    clock: { now: () => 1_800_000_000_000 },
    randomBytes,
    yieldPoint: () => undefined,
    log: { debug() {}, info() {}, warn: (fields) => void warnings.push(fields), error() {}, audit() {} },
    ...options,
  })
  return { copy, folder, warnings, path: join(folder, 'configuration.enc') }
}

function received(name: string): ReceivedConfig {
  const config: Config = { routes: [{ name, hostnames: ['canary.example.com'] }] }
  return { ...runToCompletion(createDivider()(config)), config }
}

describe('a persisted copy', () => {
  it('contains the last configuration and its time, encrypted', async () => {
    const { copy, folder, path } = open()
    copy.save(received('one'))
    copy.save(received('two'))
    await copy.close()
    expect(readFileSync(path, 'latin1')).not.toContain('canary')
    const read = await open({ folder }).copy.read()
    expect(read?.savedAt).toBe(1_800_000_000_000)
    expect(read?.received).toMatchObject({
      version: received('two').version,
      config: { routes: [{ name: 'two' }] },
    })
    expect(readdirSync(folder)).toEqual(['configuration.enc'])
  })

  it('is absent without a warning before the first configuration', async () => {
    const { copy, warnings } = open()
    expect(await copy.read()).toBeUndefined()
    expect(warnings).toEqual([])
  })

  it('is ignored with the key or the name of another Gateway', async () => {
    const { copy, folder } = open()
    copy.save(received('one'))
    await copy.close()
    for (const other of [{ sessionKey: 'd1'.repeat(32) }, { gateway: 'infra/other' }]) {
      const { copy, warnings } = open({ folder, ...other })
      expect(await copy.read()).toBeUndefined()
      expect(warnings).toEqual([{ reason: 'the file is damaged, or of another Gateway or SESSION_KEY' }])
    }
  })

  it('is ignored if any byte of the file changes or is lost', async () => {
    const { copy, folder, path } = open()
    copy.save(received('one'))
    await copy.close()
    const bytes = readFileSync(path)
    const damaged = [bytes.subarray(0, 10), bytes.subarray(0, -1), Buffer.alloc(0)]
    for (let index = 0; index < bytes.length; index += 7) {
      const copy = Buffer.from(bytes)
      copy[index] = (copy[index] ?? 0) ^ 1
      damaged.push(copy)
    }
    for (const content of damaged) {
      writeFileSync(path, content)
      const { copy, warnings } = open({ folder })
      expect(await copy.read()).toBeUndefined()
      expect(warnings).toHaveLength(1)
    }
  })

  it('is written once for many configurations within the interval', async () => {
    let writes = 0
    const counting = {
      ...files,
      rename: async (from: PathLike, to: PathLike) => {
        writes += 1
        await files.rename(from, to)
      },
    }
    const { copy, path } = open({ files: { ...counting }, clock: { now: Date.now } })
    copy.save(received('one'))
    await until('the first copy is written', () => writes === 1)
    for (let index = 0; index < 100; index++) copy.save(received(`route-${index}`))
    expect(writes).toBe(1)
    await copy.close()
    expect(writes).toBe(2)
    expect(readFileSync(path).length).toBeGreaterThan(0)
  })

  it('reports a folder that is not writable', async () => {
    const { copy, warnings } = open({ folder: '/nonexistent/folder' })
    copy.save(received('one'))
    await copy.close()
    expect(warnings).toEqual([{ reason: expect.stringContaining('ENOENT') }])
  })
})
