import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import type { EgressPolicy } from '../../../net/egress/egress.ts'
import { noCaller } from '../caller.ts'
import type { BackendAuthConfig } from '../config.ts'
import { compileAuthorize } from '../credentials.ts'
import type { CredentialUse } from './permit.ts'

const ofApi = new Set<object>()

/** An object of the config API. */
function record<T extends object>(value: T): T {
  ofApi.add(value)
  return value
}

async function headersWith(auth: BackendAuthConfig, use: Partial<CredentialUse>) {
  const base = fixtureContext()
  const of = (node: object): EgressPolicy => ({
    key: '',
    refuses: () => undefined,
    isOfOperator: !ofApi.has(node),
  })
  const request = { headers: {} as Record<string, string>, path: '/', origin: 'http://other.test' }
  try {
    await compileAuthorize(auth, { ...base, egress: { ...base.egress, of } }, use)?.apply(request, {
      ...noCaller,
      credential: 'of-client',
    })
  } catch (error) {
    return `${(error as Error).cause}`
  }
  return request.headers['authorization']
}

const key = { key: 'of-file' }
const host = { host: 'a:80' }
const others = record({ host: 'b:80' })
const denied = expect.stringContaining('credentials of the configuration file')

describe('a credential of the file', () => {
  it('is sent to hosts of the file', async () => {
    expect(await headersWith(key, { destination: host })).toBe('Bearer of-file')
    expect(await headersWith(key, {})).toBe('Bearer of-file')
  })

  it.each([
    { destination: others },
    { destination: host, connection: { backendTLS: record({ insecure: true }) } },
    { destination: host, connection: { backendTunnel: record({ proxy: { host: 'b:80' } }) } },
  ])('is not sent by a record with %j', async (use) => {
    expect(await headersWith(key, use)).toEqual(denied)
    expect(
      await headersWith({ credentials: [{ key: 'k', location: { header: { name: 'x' } } }] }, use),
    ).toEqual(denied)
  })
})

it('records send their own credential, and that of the client, to their hosts', async () => {
  expect(await headersWith(record({ key: 'own' }), { destination: others })).toBe('Bearer own')
  expect(await headersWith({ passthrough: {} }, { destination: others })).toBe('Bearer of-client')
})
