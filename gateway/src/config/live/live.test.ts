import { expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import type { Snapshot } from '../../pipeline/snapshot.ts'
import type { Config } from '../schema.ts'
import { createCompileCache } from './compile-cache.ts'
import { createLiveConfig } from './live.ts'
import { shareStructure } from './structural-share.ts'

/** A live configuration whose listeners record the prepared snapshots. */
function liveConfig() {
  const snapshots: Snapshot[] = []
  const cache = createCompileCache(() => '')
  const context = { ...fixtureContext(), ...cache }
  const live = createLiveConfig({
    context,
    cache,
    facts: {
      version: 'test',
      sessionKey: undefined,
      ui: () => ({ status: 404, headers: {}, body: undefined }),
    },
    listeners: {
      find: () => undefined,
      async prepare(next) {
        snapshots.push(next)
        return { commit() {}, abort() {} }
      },
      addresses: () => [],
      drain: async () => {},
      close() {},
    },
    onStatus() {},
  })
  return { live, snapshots }
}

const config: Config = { backends: [{ name: 'a', endpoints: [{ host: '10.0.0.1:80' }] }] }

it('activates a change of endpoints without compiling', async () => {
  const { live, snapshots } = liveConfig()
  ;(await live.prepare(config)).commit()
  const next = shareStructure<Config>(config, {
    backends: [{ name: 'a', endpoints: [{ host: '10.0.0.2:80' }] }],
  })
  const prepared = await live.prepare(next)
  expect(live.config).toBe(config)
  prepared.commit()
  expect(live.config).toBe(next)
  expect([live.status.revision, snapshots.length]).toEqual([2, 1])
})

it('compiles a change of endpoints while a source has an error', async () => {
  const { live, snapshots } = liveConfig()
  ;(await live.prepare(config)).commit()
  live.report('namedFiles', 'the certificate is unreadable')
  await live.prepare({ backends: [{ name: 'a', endpoints: [] }] })
  expect(snapshots).toHaveLength(2)
})
