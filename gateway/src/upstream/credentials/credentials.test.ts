import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { noCaller } from './caller.ts'
import { checkBackendAuth } from './check.ts'
import type { BackendAuthConfig } from './config.ts'
import { compileAuthorize } from './credentials.ts'

const inHeader = (name: string) => ({ header: { name } })
const credentials: NonNullable<BackendAuthConfig['credentials']> = [
  { location: inHeader('x-tenant'), key: 'tenant' },
  { location: { queryParameter: { name: 'key' } }, key: { file: '/key' } },
  { location: { cookie: { name: 'session' } }, key: 'cookie' },
]

async function sent(auth: BackendAuthConfig, caller = noCaller) {
  const authorize = compileAuthorize(auth, { ...fixtureContext(), readFile: () => 'of-file\n' })
  const request = { headers: { 'x-tenant': 'client' }, path: '/x?key=client' }
  await authorize?.apply(request, caller)
  return { ...request, placed: authorize?.placed?.(request), source: authorize?.source }
}

const more = { 'x-tenant': 'tenant', cookie: 'session=cookie' }
const values = ['tenant', 'of-file', 'cookie']

describe('further credentials', () => {
  it('are sent at their locations, in place of values of the client', async () => {
    expect(await sent({ credentials })).toEqual({
      ...{ headers: more, path: '/x?key=of-file', placed: values, source: 'gateway' },
    })
  })

  it('are sent beside a key', async () => {
    const { headers, placed } = await sent({ key: 'k', credentials })
    expect(headers).toEqual({ ...more, authorization: 'Bearer k' })
    expect(placed).toEqual(['k', ...values])
  })

  it('are sent beside the credential of the client, which errors may show', async () => {
    const caller = { ...noCaller, credential: 'own' }
    const { headers, placed, source } = await sent({ passthrough: {}, credentials }, caller)
    expect(headers).toEqual({ ...more, authorization: 'Bearer own' })
    expect([placed, source]).toEqual([values, 'client'])
  })

  it.each([
    [
      { key: 'k', credentials: [{ location: inHeader('Authorization'), key: 'a' }] },
      'credentials.0.location: must differ',
    ],
    [{ credentials: [credentials[0], credentials[0]] }, 'credentials.1.location: must differ'],
    [
      { credentials: [{ location: inHeader('a b'), key: 'a' }] },
      'credentials.0.location.header.name: not a header',
    ],
    [{ credentials: [{ location: inHeader('a'), key: 'a b' }] }, 'credentials.0.key: not a credential'],
    [{ key: 'k', credentials }, undefined],
    [{ credentials: [{ location: inHeader('authorization'), key: 'a' }] }, undefined],
  ])('%j is checked', (auth, mistake) => {
    const found: string[] = []
    checkBackendAuth(auth as BackendAuthConfig, (path, message) =>
      found.push(`${path.join('.')}: ${message}`),
    )
    if (mistake === undefined) expect(found).toEqual([])
    else expect(found.join()).toContain(mistake)
  })
})
