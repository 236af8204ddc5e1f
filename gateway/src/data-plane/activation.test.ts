import { expect, it } from 'vitest'
import { fixtureContext } from '../../test/fixtures/pipeline.ts'
import { createCompileCache } from '../config/live/compile-cache.ts'
import { shareStructure } from '../config/live/structural-share.ts'
import type { Config } from '../config/schema.ts'
import type { Snapshot } from '../pipeline/snapshot.ts'
import { createActivation } from './activation.ts'

/** An activation whose listeners record the prepared snapshots. */
function fixtureActivation() {
  const snapshots: Snapshot[] = []
  const cache = createCompileCache(() => '')
  const activation = createActivation({
    context: { ...fixtureContext(), ...cache },
    cache,
    bind: async () => {},
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
      announceDrain() {},
      drain: async () => {},
      close() {},
    },
  })
  return { activation, snapshots }
}

const config: Config = { backends: [{ name: 'a', endpoints: [{ host: '10.0.0.1:80' }] }] }

it('activates a change of endpoints without compiling', async () => {
  const { activation, snapshots } = fixtureActivation()
  await (await activation.prepare(config)).commit()
  const next = shareStructure<Config>(config, {
    backends: [{ name: 'a', endpoints: [{ host: '10.0.0.2:80' }] }],
  })
  const prepared = await activation.prepare(next)
  expect(activation.config).toBe(config)
  await prepared.commit()
  expect(activation.config).toBe(next)
  expect(snapshots).toHaveLength(1)
})

it('compiles a change of endpoints after a change of a file', async () => {
  const { activation, snapshots } = fixtureActivation()
  await (await activation.prepare(config)).commit()
  activation.evictFile('certificate.pem')
  await activation.prepare({ backends: [{ name: 'a', endpoints: [] }] })
  expect(snapshots).toHaveLength(2)
})
