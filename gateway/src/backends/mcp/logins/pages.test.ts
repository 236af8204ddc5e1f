import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { createLoginLinks } from './links.ts'
import type { LoginService } from './login-service.ts'
import { createLoginPages } from './pages.ts'

const links = createLoginLinks(new Uint8Array(32), 'x', () => 0)
const link = links.sealLink({ user: { key: 'ada', name: 'Ada' }, target: 't' })

function world() {
  const redeemed: object[] = []
  const service: LoginService = {
    token: () => Promise.reject(new Error('unexpected')),
    authorize: async () => ({
      ...{ kind: 'started', address: 'https://auth.test/authorize?client_id=c' },
      origin: { issuer: 'https://auth.test', clientId: 'c' },
    }),
    async redeem(login) {
      redeemed.push(login)
      return { kind: 'done' }
    },
  }
  const pages = createLoginPages({
    ...{ publicUrl: new URL('https://gateway.test/mcp'), links },
    ...{ serviceOf: () => service, used: { tryUse: () => true } as never },
  })
  async function begin(cookie: string) {
    const exchange = fixtureExchange({ path: pages.start, headers: { cookie } })
    exchange.body = Buffer.from(new URLSearchParams({ link }).toString())
    const { headers } = await pages.handle(exchange)
    const address = new URL(firstHeader(headers, 'location') ?? '')
    return { address, set: firstHeader(headers, 'set-cookie') ?? '' }
  }
  async function complete(state: string, cookie: string) {
    const query = new URLSearchParams({ state, code: 'a' }).toString()
    const exchange = fixtureExchange({ method: 'GET', path: pages.callback, query, headers: { cookie } })
    return (await pages.handle(exchange)).status
  }
  return { pages, begin, complete, redeemed }
}

describe('the cookie of a login', () => {
  it('is limited to the host, and new for each login', async () => {
    const { begin, complete, redeemed } = world()
    const known = `__Host-tollgate-mcp-login=${'a'.repeat(43)}`
    const { address, set } = await begin(known)
    expect(set).toMatch(/^__Host-tollgate-mcp-login=[A-Za-z0-9_-]{43}; Path=\/; .*; Secure$/)
    const state = address.searchParams.get('state') ?? ''
    expect(await complete(state, known)).toBe(403)
    expect(redeemed).toEqual([])
    expect(await complete(state, set.split(';')[0] ?? '')).toBe(200)
    expect(redeemed).toMatchObject([{ user: 'ada', origin: { issuer: 'https://auth.test', clientId: 'c' } }])
  })
})

describe('the document of the client', () => {
  it('has the redirect URI, and the address of the document as id', async () => {
    const { pages } = world()
    const { status, headers, body } = await pages.handle(
      fixtureExchange({ method: 'GET', path: '/mcp/oauth/client' }),
    )
    expect([status, headers['content-type']]).toEqual([200, 'application/json'])
    expect(JSON.parse(String(body))).toMatchObject({
      client_id: 'https://gateway.test/mcp/oauth/client',
      redirect_uris: ['https://gateway.test/mcp/oauth/callback'],
      ...{ token_endpoint_auth_method: 'none', application_type: 'web' },
    })
    expect((await pages.handle(fixtureExchange({ method: 'POST', path: pages.document }))).status).toBe(405)
  })
})
