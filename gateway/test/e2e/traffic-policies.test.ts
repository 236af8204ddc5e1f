import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../support/http-call.ts'
import type { MockServer } from '../support/mock-server.ts'
import { createTokenIssuer, type TokenIssuer } from '../support/token-issuer.ts'
import { namedUpstream, type Routing, routing } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const at = (path: string) => ({ matches: [{ path: { pathPrefix: path } }] })
const teamKey = 'team-key-52c1'
const gatewayKey = 'gateway-key-77aa'
const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` })

let upstream: MockServer & { host: string }
let one: TokenIssuer
let other: TokenIssuer

beforeAll(async () => {
  upstream = await namedUpstream('up', 'file')
  one = await createTokenIssuer('https://one.test', 'app')
  other = await createTokenIssuer('https://other.test', 'app')
})

function seenHeaders(): Record<string, unknown> {
  return upstream.seen.at(-1)?.headers ?? {}
}

describe('policies of gateway, listener and route', () => {
  it("all apply, and routes cannot relax the gateway's", async () => {
    const { port, gateway } = await routing(
      [
        { name: 'open', ...at('/open'), backends: [{ host: upstream.host }] },
        {
          name: 'more',
          ...at('/more'),
          policies: {
            authorization: { rules: ['jwt.role == "editor"', { deny: 'request.method == "DELETE"' }] },
            localRateLimit: [{ requests: 4, unit: 'Hours' }],
          },
          backends: [{ host: upstream.host }],
        },
      ],
      {
        gateway: {
          jwtAuth: { issuer: one.issuer, audiences: ['app'], jwks: one.keys },
          authorization: { rules: [{ require: 'jwt.tenant == "t1"' }] },
          localRateLimit: [{ requests: 10, unit: 'Hours' }],
        },
      },
    )
    const viewer = bearer(await one.token({ tenant: 't1', role: 'viewer' }))
    const editor = bearer(await one.token({ tenant: 't1', role: 'editor' }))
    const elsewhere = bearer(await one.token({ tenant: 't2', role: 'editor' }))

    expect((await call(port, '/open')).status).toBe(401)
    // Route names are not disclosed to unauthenticated clients.
    expect((await call(port, '/nothing-here')).status).toBe(401)
    expect(await call(port, '/open', { headers: elsewhere })).toMatchObject({
      status: 403,
      text: 'authorization failed',
    })
    expect((await call(port, '/open', { headers: viewer })).text).toBe('up')
    expect(seenHeaders()['authorization']).toBeUndefined()
    expect((await call(port, '/nothing', { headers: viewer })).status).toBe(404)
    expect((await call(port, '/more', { headers: viewer })).status).toBe(403)
    expect((await call(port, '/more', { headers: editor, method: 'DELETE' })).status).toBe(403)
    expect((await call(port, '/more', { headers: editor })).status).toBe(200)
    const statuses: number[] = []
    for (let count = 0; count < 6; count++)
      statuses.push((await call(port, '/more', { headers: editor })).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
    const refused = await call(port, '/more', { headers: editor })
    expect(refused.text).toBe('rate limit exceeded')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    // The gateway's ten: two and a 404 without the route, four with it; a request refused by its limit
    // consumed none.
    const last: number[] = []
    for (let count = 0; count < 5; count++) last.push((await call(port, '/open', { headers: viewer })).status)
    expect(last).toEqual([200, 200, 200, 200, 429])
    const routes = (await gateway.logged(17)).map((line) => line['route'])
    expect(routes.filter((route) => route === 'more')).toHaveLength(10)
  })

  it('keep the count of a limit when something else is reloaded', async () => {
    const limited = {
      ...at('/'),
      name: 'limited',
      policies: { localRateLimit: [{ requests: 3, unit: 'Hours' }], directResponse: { status: 200 } },
    }
    const { port, gateway } = await routing([limited])
    await call(port, '/')
    await call(port, '/')
    const more = { name: 'more', ...at('/more'), policies: { directResponse: { status: 200 } } }
    await gateway.reload({ gateways: { default: { port } }, routes: [more, limited] })
    expect((await call(port, '/')).status).toBe(200)
    expect((await call(port, '/')).status).toBe(429)
  })

  it('take keys at the gateway and others at the route, and forward neither', async () => {
    const { port } = await routing(
      [
        {
          ...at('/'),
          policies: {
            apiKey: {
              location: { header: { name: 'x-team-key' } },
              keys: [{ key: teamKey, metadata: { team: 'search' } }],
            },
            authorization: { rules: ['apiKey.team == "search"'] },
            requestHeaderModifier: { set: { 'x-checked': 'yes' } },
          },
          backends: [{ host: upstream.host }],
        },
      ],
      { gateway: { apiKey: { keys: [{ key: gatewayKey, metadata: { name: 'all' } }] } } },
    )
    const asked = async (headers: Record<string, string>) => (await call(port, '/', { headers })).status
    expect(await asked({})).toBe(401)
    expect(await asked(bearer(gatewayKey))).toBe(401)
    expect(await asked({ 'x-team-key': teamKey })).toBe(401)
    expect(await asked({ ...bearer(gatewayKey), 'x-team-key': 'wrong' })).toBe(401)
    expect(await asked({ ...bearer(gatewayKey), 'x-team-key': teamKey })).toBe(200)
    const { 'x-checked': checked, ...rest } = seenHeaders()
    expect(checked).toBe('yes')
    expect(JSON.stringify(rest)).not.toMatch(/gateway-key|team-key/)
  })
})

describe('jwtAuth', () => {
  const providers = () => [
    { issuer: one.issuer, audiences: ['app'], jwks: one.keys },
    { issuer: other.issuer, audiences: ['app', 'second'], jwks: { inline: other.keys } },
  ]
  let running: Routing

  beforeAll(async () => {
    const say = { backends: [{ host: upstream.host }] }
    const withMode = (mode: string) => ({
      name: mode,
      ...at(`/${mode}`),
      policies: {
        jwtAuth: { mode, providers: providers() },
        requestHeaderModifier: { set: { 'x-mode': mode } },
      },
      ...say,
    })
    running = await routing(
      [
        withMode('strict'),
        withMode('optional'),
        withMode('permissive'),
        {
          name: 'cookie',
          ...at('/cookie'),
          policies: { jwtAuth: { providers: providers(), location: { cookie: { name: 'session' } } } },
          ...say,
        },
      ],
      {},
      { lifetime: 'file' },
    )
  })

  it('accepts tokens of each of its providers, checked by the keys of their own issuer', async () => {
    const asked = async (token: string) =>
      (await call(running.port, '/strict', { headers: bearer(token) })).status
    expect(await asked(await one.token())).toBe(200)
    expect(await asked(await other.token({ aud: 'second' }))).toBe(200)
    expect(await asked(await one.token({ aud: 'second' }))).toBe(401)
    expect(await asked(await one.token({ iss: other.issuer }))).toBe(401)
    expect(await asked(await one.token({ iss: 'https://nobody.test' }))).toBe(401)
    expect(await asked(await one.token({ exp: 1 }))).toBe(401)
    expect(await asked(await one.token({ nbf: 4_000_000_000 }))).toBe(401)
    const [head, claims] = (await one.token()).split('.')
    expect(await asked(`${head}.${claims}.`)).toBe(401)
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    expect(await asked(`${none}.${claims}.`)).toBe(401)
  })

  it.each([
    ['strict', 401, 401, 200],
    ['optional', 200, 401, 200],
    ['permissive', 200, 200, 200],
  ])(
    'in mode %s answers %i without a token, %i with a bad and %i with a good one',
    async (mode, ...expected) => {
      const { port } = running
      const good = await one.token()
      const bad = `${good.slice(0, -4)}AAAA`
      const statuses = [
        await call(port, `/${mode}`),
        await call(port, `/${mode}`, { headers: bearer(bad) }),
        await call(port, `/${mode}`, { headers: bearer(good) }),
      ].map(({ status }) => status)
      expect(statuses).toEqual(expected)
      expect(seenHeaders()['authorization']).toBeUndefined()
    },
  )

  it('reads tokens from the configured location', async () => {
    const { port } = running
    const token = await one.token()
    expect((await call(port, '/cookie', { headers: bearer(token) })).status).toBe(401)
    const answer = await call(port, '/cookie', { headers: { cookie: `a=1; session=${token}; b=2` } })
    expect(answer.status).toBe(200)
    expect(String(seenHeaders()['cookie'])).toMatch(/a=1.*b=2/)
    expect(String(seenHeaders()['cookie'])).not.toContain(token)
  })

  it('names the expected credential in a 401', async () => {
    const { headers, text } = await call(running.port, '/strict')
    expect(headers['www-authenticate']).toMatch(/^Bearer/)
    expect(text).not.toBe('')
  })
})

describe('cors', () => {
  it('is answered before credentials are asked for, and the most specific one counts', async () => {
    const page = 'https://page.test'
    const { port } = await routing(
      [
        { name: 'general', ...at('/general'), backends: [{ host: upstream.host }] },
        {
          name: 'special',
          ...at('/special'),
          policies: { cors: { allowOrigins: ['https://special.test'], allowMethods: ['PUT'], maxAge: '1m' } },
          backends: [{ host: upstream.host }],
        },
      ],
      {
        gateway: {
          cors: { allowOrigins: [page], allowHeaders: ['authorization'], exposeHeaders: ['x-id'] },
          apiKey: { keys: [{ key: gatewayKey }] },
        },
      },
    )
    const preflight = (path: string, origin: string) =>
      call(port, path, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'PUT',
          'access-control-request-headers': 'authorization',
        },
      })
    const general = await preflight('/general', page)
    expect(general.status).toBeLessThan(300)
    expect(general.headers['access-control-allow-origin']).toBe(page)
    expect(general.headers['access-control-allow-headers']).toMatch(/authorization/)
    expect((await preflight('/special', page)).headers['access-control-allow-origin']).toBeUndefined()
    const special = await preflight('/special', 'https://special.test')
    expect(special.headers).toMatchObject({
      'access-control-allow-origin': 'https://special.test',
      'access-control-max-age': '60',
    })
    expect(special.headers['access-control-allow-methods']).toMatch(/PUT/)
    expect(upstream.seen.filter(({ method }) => method === 'OPTIONS')).toEqual([])

    // A page can read why it was refused.
    const refused = await call(port, '/general', { headers: { origin: page } })
    expect(refused).toMatchObject({ status: 401, headers: { 'access-control-allow-origin': page } })
    const admitted = await call(port, '/general', { headers: { origin: page, ...bearer(gatewayKey) } })
    expect(admitted).toMatchObject({
      status: 200,
      headers: { 'access-control-allow-origin': page, 'access-control-expose-headers': 'x-id' },
    })
  })

  it('names the values of the request where * is combined with credentials', async () => {
    const { port, gateway } = await routing([
      {
        ...at('/'),
        policies: {
          cors: {
            allowOrigins: ['*'],
            allowMethods: ['*'],
            allowHeaders: ['*'],
            exposeHeaders: ['x-id'],
            allowCredentials: true,
          },
        },
        backends: [{ host: upstream.host }],
      },
    ])
    const origin = 'https://other.foo.com'
    const headers = {
      origin,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'x-header-1, x-header-2',
    }
    const preflight = await call(port, '/', { method: 'OPTIONS', headers })
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': 'x-header-1, x-header-2',
      'access-control-expose-headers': 'x-id',
    })
    const answer = await call(port, '/', { headers: { origin } })
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      vary: 'origin',
    })
    await until('the warning is written', () =>
      gateway.stdout().includes('cors permits credentials for every origin'),
    )
  })
})
