import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { createPlaneMemories } from '../../test/support/plane-memories.ts'
import type { Headers } from '../net/http/headers.ts'
import type { ReportIssue } from '../schema/report.ts'
import { checkBackendPolicies, checkNamedBackends } from './check.ts'
import type { BackendPolicies, NamedBackend } from './config.ts'
import { callerOf, noCaller } from './credentials/caller.ts'
import { compileDestination, compileNamedDestination, type Destination } from './destination.ts'

describe('a destination', () => {
  it('uses plain text without TLS', () => {
    const plain = compiled('api.test:8080', {})
    expect(plain).toMatchObject({
      origin: 'http://api.test:8080',
      authority: 'api.test:8080',
      name: 'api.test:8080',
    })
    expect(plain.connection.tls).toBeUndefined()
    const secure = compiled('api.test:8443', { backendTLS: {} })
    expect(secure).toMatchObject({ origin: 'https://api.test:8443', authority: 'api.test:8443' })
    expect(secure.connection.tls).toMatchObject({ insecure: undefined })
  })

  it('omits the default port in the host header', () => {
    expect(compiled('api.test:80', {}).authority).toBe('api.test')
    expect(compiled('api.test:443', {}).authority).toBe('api.test:443')
    expect(compiled('api.test:443', { backendTLS: {} }).authority).toBe('api.test')
    expect(compiled('[::1]:80', {}).authority).toBe('[::1]')
    expect(compiled('[::1]:81', {}).origin).toBe('http://[::1]:81')
  })

  it('shares connections only with equal settings', () => {
    const keyOf = (policies: BackendPolicies) => compiled('api.test:1', policies).connection.key
    const tls = { cert: '/cert', key: '/key' }
    expect(keyOf({ backendTLS: { ...tls } })).toBe(keyOf({ backendTLS: { ...tls } }))
    const keys = [
      keyOf({ backendTLS: {} }),
      keyOf({ backendTLS: tls }),
      keyOf({ backendTLS: { insecure: true } }),
      keyOf({ backendTLS: { insecureHost: true } }),
      keyOf({ backendTLS: { hostname: 'other.test' } }),
      keyOf({ backendTLS: { subjectAltNames: ['other.test'] } }),
      keyOf({ http: { version: 'HTTP/2' } }),
      keyOf({ tcp: { connectTimeout: '1s' } }),
    ]
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('does not reveal a private key in its connection key', () => {
    const { connection } = compiled('api.test:1', { backendTLS: { cert: '/cert', key: '/key' } })
    expect(connection.tls?.key).toBe('content of /key')
    expect(connection.key).not.toContain('content')
  })

  it('uses each policy of the most specific level', () => {
    const destination = compileDestination(
      {
        host: 'api.test:1',
        node: {},
        policies: [
          { http: { requestTimeout: '1s' } },
          undefined,
          { http: { requestTimeout: '2s', version: 'HTTP/2' }, tcp: { connectTimeout: '3s' } },
        ],
      },
      context(),
    )
    expect(destination.requestTimeoutMs).toBe(1_000)
    expect(destination.connection).toMatchObject({ version: undefined, connectTimeoutMs: 3_000 })
  })

  it('sets the credential at its location, replacing the client’s', () => {
    const client = { authorization: 'Bearer client' }
    expect(authorized({ key: 'secret' }, client)).toEqual({ authorization: 'Bearer secret' })
    expect(authorized({ key: { file: '/secret' } }, {})).toEqual({ authorization: 'Bearer secret-of-file' })
    const location = { header: { name: 'X-Api-Key' } }
    expect(authorized({ key: 'secret', location }, {})).toEqual({ 'x-api-key': 'secret' })
  })

  it('forwards the credential of the client only if configured', () => {
    const exchange = fixtureExchange()
    exchange.auth.credential = 'token'
    const headers: Headers = {}
    const { authorize } = compiled('api.test:1', { backendAuth: { passthrough: {} } })
    authorize?.apply({ headers, path: '/' }, callerOf(exchange))
    expect(headers).toEqual({ authorization: 'Bearer token' })
    expect(compiled('api.test:1', {}).authorize).toBeUndefined()
  })

  it('rejects a file whose content is not a credential', () => {
    const policies = { backendAuth: { key: { file: '/two lines' } } }
    expect(() => compiled('api.test:1', policies)).toThrow('/two lines is not a credential')
  })

  it('is found by the name of its backend', () => {
    const backends: NamedBackend[] = [
      { name: 'one', host: 'one.test:1' },
      { name: 'tools', mcp: {} },
    ]
    const shared = context()
    const found = compileNamedDestination('/one', backends, shared)
    expect(found.name).toBe('one')
    expect(compileNamedDestination('one', backends, shared)).toBe(found)
    expect(() => compileNamedDestination('/two', backends, shared)).toThrow('no backend is named "two"')
    expect(() => compileNamedDestination('/tools', backends, shared)).toThrow('backend "tools" is not a host')
  })
})

describe('the health of a destination', () => {
  it('is undefined without eviction', () => {
    expect(compiled('api.test:1', { health: {} }).health).toBeUndefined()
  })

  it('ejects after consecutive failures, longer without recovery', () => {
    const shared = context()
    const eviction = { duration: '10s', consecutiveFailures: 2 }
    const { health } = compiled('api.test:1', { health: { eviction } }, shared)
    if (!health) throw new Error('no health')
    health.failed()
    health.succeeded()
    health.failed()
    expect(health.isEjected()).toBe(false)
    health.failed()
    expect(health.isEjected()).toBe(true)
    shared.clock.advance(10_000)
    expect(health.isEjected()).toBe(false)
    health.failed()
    shared.clock.advance(19_999)
    expect(health.isEjected()).toBe(true)
    shared.clock.advance(1)
    expect(health.isEjected()).toBe(false)
    health.succeeded()
    health.failed()
    expect(health.isEjected()).toBe(false)
  })

  it('ignores responses of calls that started before the ejection', () => {
    const shared = context()
    const { health } = compiled('api.test:1', { health: { eviction: { duration: '10s' } } }, shared)
    for (let call = 0; call < 100; call += 1) health?.failed()
    shared.clock.advance(10_000)
    expect(health?.isEjected()).toBe(false)
  })

  it('ejects for at most five minutes', () => {
    const shared = context()
    const { health } = compiled('api.test:1', { health: { eviction: { duration: '4m' } } }, shared)
    for (let round = 0; round < 10; round += 1) {
      health?.failed()
      shared.clock.advance(300_000)
      expect(health?.isEjected()).toBe(false)
    }
  })

  it('is retained across reloads', () => {
    const shared = context()
    compiled('api.test:1', { health: { eviction: {} } }, shared).health?.failed()
    expect(compiled('api.test:1', { health: { eviction: {} } }, shared).health?.isEjected()).toBe(true)
    expect(compiled('api.test:2', { health: { eviction: {} } }, shared).health?.isEjected()).toBe(false)
  })
})

describe('the health of a destination over data planes', () => {
  it('ejects after failures seen by any of them, until a success', () => {
    const { clock } = context()
    const eviction = { duration: '10s', consecutiveFailures: 2 }
    const [one, other] = createPlaneMemories(2).map(
      (memory) => compiled('api.test:1', { health: { eviction } }, { ...context(), clock, memory }).health,
    )
    one?.failed()
    other?.failed()
    expect([one?.isEjected(), other?.isEjected()]).toEqual([true, true])
    clock.advance(10_000)
    other?.succeeded()
    one?.failed()
    expect([one?.isEjected(), other?.isEjected()]).toEqual([false, false])
  })
})

describe('checks of backends', () => {
  it('report duplicate names and port 0', () => {
    const issues = issuesOf((report) =>
      checkNamedBackends(
        [
          { name: 'one', host: 'one.test:1' },
          { name: 'one', host: 'two.test:0' },
        ],
        report,
      ),
    )
    expect(issues).toEqual([
      '1.name: another backend is named "one"',
      '1.host: port 0 cannot be connected to',
    ])
  })

  it('report invalid TLS and credentials without their values', () => {
    const policies: BackendPolicies = {
      backendTLS: { cert: '/cert', insecure: true, subjectAltNames: ['x'] },
      backendAuth: { key: 'two words', location: { header: { name: 'no name', prefix: 'a\nb' } } },
      requestHeaderModifier: { set: { host: 'x' } },
    }
    const issues = issuesOf((report) => checkBackendPolicies(policies, report))
    expect(issues.map((issue) => issue.split(':')[0])).toEqual([
      'backendTLS',
      'backendTLS.subjectAltNames',
      'backendAuth.key',
      'backendAuth.location.header.name',
      'backendAuth.location.header.prefix',
      'requestHeaderModifier.set.host',
    ])
    expect(issues.join()).not.toContain('two words')
  })
})

function context() {
  return {
    ...fixtureContext(),
    readFile: (path: string) =>
      path === '/secret' ? 'secret-of-file\n' : path === '/two lines' ? 'one\ntwo' : `content of ${path}`,
  }
}

function compiled(host: string, policies: BackendPolicies, shared = context()): Destination {
  return compileDestination({ host, node: policies, policies: [policies] }, shared)
}

function authorized(backendAuth: BackendPolicies['backendAuth'], headers: Headers): Headers {
  const copy = { ...headers }
  compiled('api.test:1', { backendAuth }).authorize?.apply({ headers: copy, path: '/' }, noCaller)
  return copy
}

function issuesOf(check: (report: ReportIssue) => void): string[] {
  const issues: string[] = []
  check((path, message) => issues.push(`${path.join('.')}: ${message}`))
  return issues
}
