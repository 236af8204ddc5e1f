import { describe, expect, it } from 'vitest'
import { fixtureExchange, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import type { RequestFacts } from '../../pipeline/exchange.ts'
import { checkUrlRewrite, compileUrlRewrite, type UrlRewriteConfig } from './rewrite.ts'

function send(config: UrlRewriteConfig, request: Partial<RequestFacts> = {}) {
  const exchange = fixtureExchange({ host: 'a.test:8080', path: '/foo/bar', query: '?q=1', ...request })
  exchange.route = { target: { name: 'route' }, prefix: '/foo' }
  const { status } = throughPolicies([compileUrlRewrite(config)], exchange)
  return { status, request: exchange.facts.request, ...exchange.forwarding }
}

function mistakes(config: UrlRewriteConfig): string[] {
  const found: string[] = []
  checkUrlRewrite(config, (path) => found.push(path.join('.')))
  return found
}

describe('rewriting the address', () => {
  it.each([
    ['auto', undefined],
    ['none', 'client'],
    [{ full: 'b.test:9000' }, 'b.test:9000'],
    [{ host: 'b.test' }, 'b.test'],
    [{ port: 9000 }, 'a.test:9000'],
    [{ port: 80 }, 'a.test'],
    [undefined, undefined],
  ] as const)('with authority %j forwards the host %j', (authority, host) => {
    expect(send({ authority }).host).toBe(host)
  })

  it('changes the path, and leaves the request as the client sent it', () => {
    expect(send({ path: { full: '/x' } }).path).toBe('/x')
    const { path, request } = send({ path: { prefix: '/x' } })
    expect(path).toBe('/x/bar')
    expect(request).toMatchObject({ path: '/foo/bar', query: '?q=1', host: 'a.test:8080' })
    expect(send({ authority: 'none' }).path).toBeUndefined()
  })

  it('by the port needs a host that is one', () => {
    expect(send({ authority: { port: 9000 } }, { host: 'a b' }).status).toBe(400)
    expect(send({ authority: { host: 'b.test' } }, { host: 'a b' }).status).toBe(200)
  })
})

describe('checking', () => {
  it('reports where the mistake is', () => {
    expect(mistakes({ authority: { full: 'http://a' }, path: { prefix: 'x' } })).toEqual([
      'authority.full',
      'path.prefix',
    ])
    expect(mistakes({ authority: 'auto', path: { prefix: '' } })).toEqual([])
  })
})
