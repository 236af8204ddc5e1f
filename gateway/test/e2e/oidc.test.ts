import { readFileSync } from 'node:fs'
import { request as sendHttp } from 'node:http'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { type GatewayConfig, startGateway } from '../support/gateway.ts'
import { createLoginBrowser, type LoginBrowser } from '../support/login-browser.ts'
import { loginClient, startLoginProvider } from '../support/login-provider.mjs'
import { startMockServer } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

// Logins with a browser at a real OpenID provider.

const secret = 'cookie-secret-0123456789abcdef0123456789'
const users = {
  ada: { name: 'Ada', email: 'ada@example.com', groups: ['admins'], number: 1 },
  bob: { name: 'Bob', email: 'bob@example.com', groups: [] },
}

type Setup = {
  oidc?: Record<string, unknown>
  policies?: Record<string, unknown>
  provider?: Partial<Parameters<typeof startLoginProvider>[0]>
  config?: GatewayConfig['config']
  place?: 'gateway' | 'route' | 'ui'
  env?: Record<string, string>
}

async function setup({
  oidc = {},
  policies = {},
  provider: options = {},
  config,
  place = 'route',
  env,
}: Setup = {}) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const provider = await startLoginProvider({
    redirectUris: [`${url}/oauth/callback`],
    postLogoutRedirectUris: [`${url}/bye`],
    users,
    user: () => 'ada',
    ...options,
  })
  endAfter('test', provider.close)
  const upstream = await startMockServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'cache-control': 'public, max-age=60' })
    response.end('app')
  })
  const own = {
    oidc: {
      issuer: provider.issuer,
      clientId: loginClient.id,
      clientSecret: loginClient.secret,
      scopes: ['profile', 'email'],
      ...oidc,
    },
    ...policies,
  }
  const backends = [{ host: new URL(upstream.url).host }]
  const gateway = await startGateway(
    {
      config: config ?? {},
      gateways: { default: { port, ...(place === 'gateway' && own) } },
      ...(place === 'ui'
        ? { ui: { policies: own } }
        : {
            routes: [
              {
                matches: [{ path: { pathPrefix: '/app' } }],
                backends,
                ...(place === 'route' && { policies: own }),
              },
            ],
          }),
    },
    { env: { OIDC_COOKIE_SECRET: secret, ...env } },
  )
  return { url, port, provider, gateway, seen: upstream.seen, browser: createLoginBrowser() }
}

const sessionCookies = (browser: LoginBrowser) =>
  [...browser.cookies].filter(([name]) => name.startsWith('tollgate-oidc-s-'))
const loginCookies = (browser: LoginBrowser) =>
  [...browser.cookies.keys()].filter((name) => name.startsWith('tollgate-oidc-t-'))

describe.each(['route', 'gateway'] as const)('oidc on a %s', (place) => {
  it('logs in, returns to the deep link, and hides its cookies from the upstream', async () => {
    const { url, browser, seen, provider } = await setup({ place })
    browser.cookies.set('own', '1')
    const page = await browser.open(`${url}/app/deep/?q=a%20b&x=1`)
    expect(page).toMatchObject({ status: 200, text: 'app' })
    expect(page.url.href).toBe(`${url}/app/deep/?q=a%20b&x=1`)
    expect(page.visited[1]).toContain(`${provider.issuer}/auth?`)
    const query = new URL(page.visited[1] ?? '').searchParams
    expect(query.get('code_challenge_method')).toBe('S256')
    expect(query.get('scope')).toBe('openid profile email')
    expect(seen.at(-1)?.headers.cookie).toContain('own=1')
    expect(seen.at(-1)?.headers.cookie).not.toContain('tollgate-oidc')
    expect(sessionCookies(browser)).toHaveLength(1)
    expect(loginCookies(browser)).toEqual([])
    const set = browser.received.filter((line) => line.startsWith('tollgate-oidc-s-'))
    expect(set[0]).toMatch(/; Path=\/; HttpOnly; SameSite=Lax$/)
    expect((await browser.script(`${url}/app/data`)).status).toBe(200)
  })
})

describe('oidc', () => {
  it('returns 401 to scripts and other clients without a session', async () => {
    const { url, browser } = await setup()
    const script = await browser.script(`${url}/app/data`)
    expect(script.status).toBe(401)
    expect(await script.json()).toEqual({
      error: 'login_required',
      message: 'a login is required: open the address in a browser',
    })
    const post = await browser.navigate(`${url}/app/form`, { method: 'POST', body: 'a=1' })
    expect(post.status).toBe(401)
    expect((await fetch(`${url}/app`, { redirect: 'manual' })).status).toBe(401)
    expect(browser.cookies.size).toBe(0)
  })

  it('serves claims of the ID token and of the UserInfo endpoint to rules', async () => {
    const user = { name: 'ada' }
    const { url } = await setup({
      policies: {
        authorization: {
          rules: [
            { require: '"admins" in jwt.groups && jwt.email == "ada@example.com" && jwt.sub == "ada"' },
          ],
        },
      },
      provider: { user: () => user.name },
    })
    expect((await createLoginBrowser().open(`${url}/app`)).status).toBe(200)
    user.name = 'bob'
    expect((await createLoginBrowser().open(`${url}/app`)).status).toBe(403)
  })

  it('completes logins of several tabs, in any order', async () => {
    const { url, browser } = await setup()
    const [one, two] = [await browser.navigate(`${url}/app/1`), await browser.navigate(`${url}/app/2`)]
    expect(loginCookies(browser)).toHaveLength(2)
    const second = await browser.open(two.headers.get('location') ?? '')
    const first = await browser.open(one.headers.get('location') ?? '')
    expect([first.url.pathname, second.url.pathname]).toEqual(['/app/1', '/app/2'])
    expect([first.status, second.status]).toEqual([200, 200])
  })

  it('limits the logins in progress of a browser', async () => {
    const { url, browser } = await setup()
    for (let index = 0; index < 20; index += 1) await browser.navigate(`${url}/app/${index}`)
    expect(loginCookies(browser)).toHaveLength(8)
  })

  it('refuses forged states, codes of another browser, replays and errors of the provider', async () => {
    const { url, browser, provider } = await setup()
    const page = await browser.open(`${url}/app`)
    const callback = page.visited.find((visited) => visited.startsWith(`${url}/oauth/callback`)) ?? ''
    const replay = await browser.navigate(callback)
    expect([replay.status, await replay.text()]).toEqual([400, expect.stringContaining('already completed')])

    browser.cookies.clear()
    const victim = createLoginBrowser()
    const location = (await browser.navigate(`${url}/app`)).headers.get('location') ?? ''
    const attack = await stopAt(browser, location, `${url}/oauth/callback`)
    expect((await victim.navigate(attack)).status).toBe(400)

    const forged = new URL(attack)
    const state = forged.searchParams.get('state') ?? ''
    forged.searchParams.set('state', `${state.slice(0, -1)}${state.endsWith('A') ? 'B' : 'A'}`)
    expect((await browser.navigate(forged.href)).status).toBe(400)
    expect((await browser.navigate(`${attack}&state=${state}`)).status).toBe(400)
    expect((await browser.navigate(`${url}/oauth/callback`)).status).toBe(400)
    expect(provider.grants).toEqual(['authorization_code'])

    const denied = new URL(`${url}/oauth/callback?error=access_denied&error_description=%3Cb%3E`)
    denied.searchParams.set('state', state)
    denied.searchParams.set('iss', provider.issuer)
    const refused = await browser.navigate(denied.href)
    const text = await refused.text()
    expect([refused.status, text]).toEqual([403, expect.stringContaining('access_denied')])
    expect(text).not.toContain('<b>')
    expect(sessionCookies(browser)).toEqual([])
  })

  it('refuses cookies that are changed, cut, doubled, or of another client', async () => {
    const { url, browser } = await setup()
    await browser.open(`${url}/app`)
    const [[name, value] = ['', '']] = sessionCookies(browser)
    const middle = Math.floor(value.length / 2)
    const changed = value.slice(0, middle) + (value[middle] === 'A' ? 'B' : 'A') + value.slice(middle + 1)
    for (const forged of [
      changed,
      value.slice(0, -10),
      `2${value.slice(1)}`,
      '1.',
      `1.${'A'.repeat(9000)}`,
    ]) {
      browser.cookies.set(name, forged)
      expect((await browser.script(`${url}/app`)).status).toBe(401)
    }
    const doubled = await fetch(`${url}/app`, { headers: { cookie: `${name}=${value}; ${name}=${value}` } })
    expect(doubled.status).toBe(401)
    const other = await setup({ oidc: { scopes: ['email'] } })
    const moved = await fetch(`${other.url}/app`, { headers: { cookie: `${name}=${value}` } })
    expect(moved.status).toBe(401)
  })

  it('never redirects to another origin after the login', async () => {
    const { url, browser } = await setup({ place: 'gateway' })
    for (const path of [
      '//evil.test/x',
      '/%2f%2fevil.test',
      '/%5cevil.test',
      '/app/..//evil.test',
      '/.//evil.test',
    ]) {
      const response = await browser.navigate(`${url}${path}`)
      const location = response.headers.get('location')
      if (location === null) continue
      const callback = await stopAt(browser, location, `${url}/oauth/callback`)
      const target = (await browser.navigate(callback)).headers.get('location') ?? ''
      expect([path, new URL(target, url).origin]).toEqual([path, url])
      browser.cookies.clear()
    }
  })

  it('refreshes tokens once for parallel requests, and ends the session of a blocked user', async () => {
    const { url, browser, provider } = await setup({
      provider: { accessTokenSeconds: () => 1 },
      config: { workerThreads: 2 },
    })
    await browser.open(`${url}/app`)
    // The shortest lifetime that the gateway assumes is 5 s, and its last fifth is the time of a refresh.
    await until(
      'the token is refreshed',
      async () => {
        const replies = await Promise.all(Array.from({ length: 8 }, () => browser.script(`${url}/app/x`)))
        expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
        return provider.grants.includes('refresh_token')
      },
      30_000,
    )
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
    const replies = await Promise.all(Array.from({ length: 4 }, () => browser.script(`${url}/app/x`)))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
    provider.block('ada')
    await until(
      'the session has ended',
      async () => (await browser.script(`${url}/app/x`)).status === 401,
      30_000,
    )
  }, 90_000)

  it('ends sessions at their absolute end, whatever their use', async () => {
    const { url, browser } = await setup({ oidc: { session: { maxAge: '2s', idleTimeout: '1h' } } })
    await browser.open(`${url}/app`)
    await until('the session has ended', async () => (await browser.script(`${url}/app`)).status === 401)
    expect(sessionCookies(browser)).toEqual([])
  })

  it('extends sessions with their use, and ends idle ones', async () => {
    const { url, browser } = await setup({ oidc: { session: { idleTimeout: '2s' } } })
    await browser.open(`${url}/app`)
    const first = sessionCookies(browser)
    const begin = performance.now()
    await until('the session is extended beyond its idle time', async () => {
      const reply = await browser.script(`${url}/app`)
      expect(reply.status).toBe(200)
      return performance.now() - begin > 3_000
    })
    expect(sessionCookies(browser)).not.toEqual(first)
    // The first cookie is unused since then.
    for (const [name, value] of first) browser.cookies.set(name, value)
    expect((await browser.script(`${url}/app`)).status).toBe(401)
  })

  it('marks replies with a new cookie as private', async () => {
    const { url, browser } = await setup({ oidc: { session: { idleTimeout: '2s' } } })
    await browser.open(`${url}/app`)
    const control = await until('a cookie is replaced', async () => {
      const reply = await browser.script(`${url}/app`)
      return reply.headers.getSetCookie().length > 0 && reply.headers.get('cache-control')
    })
    expect(control).toBe('private, max-age=60')
  })

  it('logs out here and at the provider, also for copies of the cookie', async () => {
    const { url, browser, provider } = await setup({ oidc: { postLogoutRedirectURI: '/bye' } })
    await browser.open(`${url}/app`)
    const copy = new Map(browser.cookies)
    const foreign = await browser.navigate(`${url}/oauth/callback/logout`, {
      headers: { 'sec-fetch-site': 'cross-site' },
    })
    expect(await foreign.text()).toContain('<form method="post"')
    const forged = await browser.navigate(`${url}/oauth/callback/logout`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' },
    })
    expect(forged.status).toBe(403)
    expect((await browser.script(`${url}/app`)).status).toBe(200)

    const response = await browser.navigate(`${url}/oauth/callback/logout`)
    const location = new URL(response.headers.get('location') ?? '')
    expect(location.href).toContain(`${provider.issuer}/session/end`)
    expect(location.searchParams.get('post_logout_redirect_uri')).toBe(`${url}/bye`)
    expect(location.searchParams.get('id_token_hint')).toMatch(/^ey/)
    expect(sessionCookies(browser)).toEqual([])
    expect((await browser.script(`${url}/app`)).status).toBe(401)
    for (const [name, value] of copy) browser.cookies.set(name, value)
    expect((await browser.script(`${url}/app`)).status).toBe(401)
  })

  it('accepts cookies of previous secrets', async () => {
    const { url, browser, gateway, port } = await setup({ oidc: { session: { secrets: ['a'.repeat(32)] } } })
    await browser.open(`${url}/app`)
    const rotate = async (...secrets: string[]) => {
      const { routes = [], ...rest } = JSON.parse(readFileSync(gateway.file, 'utf8')) as GatewayConfig
      const [route] = routes
      const policies = structuredClone(route?.['policies']) as { oidc: { session: object } }
      policies.oidc.session = { secrets }
      await gateway.reload({ ...rest, gateways: { default: { port } }, routes: [{ ...route, policies }] })
    }
    await rotate('b'.repeat(32), 'a'.repeat(32))
    expect((await browser.script(`${url}/app`)).status).toBe(200)
    await rotate('b'.repeat(32))
    expect((await browser.script(`${url}/app`)).status).toBe(401)
  })

  it('continues sessions of other replicas with the same secret', async () => {
    const { url, browser, gateway } = await setup()
    await browser.open(`${url}/app`)
    await gateway.stop()
    const again = await startGateway(
      {},
      { again: gateway, env: { OIDC_COOKIE_SECRET: `${'n'.repeat(40)},${secret}` } },
    )
    expect((await browser.script(`${url}/app`)).status).toBe(200)
    await again.stop()
    await startGateway({}, { again, env: { OIDC_COOKIE_SECRET: 'n'.repeat(40) } })
    expect((await browser.script(`${url}/app`)).status).toBe(401)
  })

  it.each(['ui', 'route'] as const)(
    'refuses forged requests of other pages with the session, on a %s',
    async (place) => {
      const { url, browser } = await setup({ place })
      const path = place === 'ui' ? '/api/config/resources/llm.model' : '/app/form'
      await browser.open(`${url}${path}`)
      const statusOf = async (headers: Record<string, string>) => {
        const init = { method: 'POST', headers: { 'content-type': 'text/plain', ...headers }, body: '{}' }
        return (await browser.script(`${url}${path}`, init)).status
      }
      for (const site of ['cross-site', 'same-site'])
        expect(await statusOf({ 'sec-fetch-site': site })).toBe(403)
      const own = await statusOf({ 'sec-fetch-site': 'same-origin', origin: url })
      expect([401, 403]).not.toContain(own)
    },
  )

  it('uses the public address behind a trusted proxy only', async () => {
    const { url, gateway, port } = await setup()
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'gw.example.com' }
    const redirectUri = async () => {
      const browser = createLoginBrowser()
      const { headers } = await browser.navigate(`${url}/app`, { headers: proxied })
      const location = new URL(headers.get('location') ?? '')
      return [location.searchParams.get('redirect_uri'), browser.received[0]?.replace(/-t-.*?;/, ';')]
    }
    expect(await redirectUri()).toEqual([
      `${url}/oauth/callback`,
      expect.stringMatching(/^tollgate-oidc; Max-Age=900; Path=\/; HttpOnly; SameSite=Lax$/),
    ])
    const { gateways: _, ...config } = JSON.parse(readFileSync(gateway.file, 'utf8')) as GatewayConfig
    await gateway.reload({
      ...config,
      gateways: { default: { port } },
      frontendPolicies: { http: { trustedProxies: ['127.0.0.1'] } },
    })
    expect(await redirectUri()).toEqual([
      'https://gw.example.com/oauth/callback',
      expect.stringMatching(/^__Host-tollgate-oidc; .*; SameSite=Lax; Secure$/),
    ])
  })

  it('refuses a WebSocket of another origin, whatever its cookie', async () => {
    const { url, browser } = await setup()
    await browser.open(`${url}/app`)
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const statusWith = (origin: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { cookie, origin, connection: 'upgrade', upgrade: 'websocket' }
        const outgoing = sendHttp(`${url}/app`, { headers }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        })
        outgoing.on('error', reject)
        outgoing.end()
      })
    expect(await statusWith('http://127.0.0.1:1')).toBe(403)
    expect(await statusWith(url)).toBe(200)
  })

  it('denies with a page that has the cause while the provider is away', async () => {
    const { url, browser, provider } = await setup()
    await provider.close()
    const page = await browser.open(`${url}/app`)
    expect([page.status, page.text]).toEqual([503, expect.stringContaining('does not respond')])
    expect(page.text).toContain('Try again')
    expect((await browser.script(`${url}/app`)).status).toBe(401)
  })

  it('protects the API of ui, and serves the redirect path there', async () => {
    const { url, browser } = await setup({
      place: 'ui',
      policies: { authorization: { rules: [{ require: 'jwt.sub == "ada"' }] } },
    })
    expect((await browser.script(`${url}/api/config/status`)).status).toBe(401)
    const page = await browser.open(`${url}/api/config/status`)
    expect([page.status, page.url.pathname]).toEqual([200, '/api/config/status'])
    expect((await browser.script(`${url}/api/config/status`)).status).toBe(200)
  })
})

/** Follows redirects until one leads to an address with the prefix. */
async function stopAt(browser: LoginBrowser, start: string, prefix: string): Promise<string> {
  let url = start
  for (let step = 0; step < 10; step += 1) {
    if (url.startsWith(prefix)) return url
    const location = (await browser.navigate(url)).headers.get('location')
    if (location === null) break
    url = new URL(location, url).href
  }
  throw new Error(`no redirect to ${prefix}, but ${url}`)
}
