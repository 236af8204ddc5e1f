import { describe, expect, it } from 'vitest'
import { fixtureExchange, textOf, throughPolicies } from '../../test/fixtures/pipeline.ts'
import { checkDirectResponse, compileDirectResponse, type DirectResponseConfig } from './direct-response.ts'

const variables = new Set(['request', 'request.body', 'jwt'])

function mistakes(config: DirectResponseConfig): string[] {
  const found: string[] = []
  checkDirectResponse(config, variables, (path) => found.push(path.join('.')))
  return found
}

describe('a direct response', () => {
  it('is the configured text, for every request', () => {
    const policy = compileDirectResponse({ status: 418, body: 'täxt' }, variables)
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const reply = throughPolicies([policy], fixtureExchange({ method }))
      expect(reply.status).toBe(418)
      expect(reply.headers).toEqual({ 'content-type': 'text/plain; charset=utf-8' })
      expect(textOf(reply)).toBe('täxt')
    }
  })

  it('may have no body', () => {
    const reply = throughPolicies([compileDirectResponse({ status: 204 }, variables)], fixtureExchange())
    expect(reply).toEqual({ status: 204, headers: {}, body: undefined })
  })

  it('is independent of earlier replies', () => {
    const policy = compileDirectResponse({ status: 200, body: 'x' }, variables)
    const first = throughPolicies([policy], fixtureExchange())
    first.headers['x-a'] = '1'
    expect(throughPolicies([policy], fixtureExchange()).headers).not.toHaveProperty('x-a')
  })

  it('has no body where its status allows none', () => {
    expect(mistakes({ status: 204, body: 'x' })).toEqual(['body'])
    expect(mistakes({ status: 204, body: '' })).toEqual([])
    expect(mistakes({ status: 404, body: 'x' })).toEqual([])
  })

  it('has the value of an expression: text, or JSON', () => {
    const compile = (bodyExpression: string) =>
      throughPolicies(
        [compileDirectResponse({ status: 200, bodyExpression }, variables)],
        fixtureExchange({ path: '/p' }),
      )
    expect(textOf(compile('"at " + request.path'))).toBe('at /p')
    const json = compile('{"path": request.path, "n": 9007199254740993}')
    expect(textOf(json)).toBe('{"path":"/p","n":9007199254740993}')
    expect(json.headers).toEqual({ 'content-type': 'application/json' })
  })

  it('is an error if the expression of its body fails', () => {
    const policy = compileDirectResponse({ status: 200, bodyExpression: 'jwt.sub' }, variables)
    const exchange = fixtureExchange()
    expect(throughPolicies([policy], exchange).status).toBe(500)
    expect(exchange.log.refusedBy).toBe('direct_response_failed')
  })

  it('has the headers whose expressions have a valid value', () => {
    const headers = {
      'X-Path': 'request.path',
      'x-none': 'jwt.sub',
      'x-broken': '"a\\nb"',
      'content-type': '"a/b"',
    }
    const reply = throughPolicies(
      [compileDirectResponse({ status: 200, body: 'x', headers }, variables)],
      fixtureExchange({ path: '/p' }),
    )
    expect(reply.headers).toEqual({ 'x-path': '/p', 'content-type': 'a/b' })
  })

  it('rejects two bodies, derived headers and unknown variables', () => {
    expect(
      mistakes({ status: 200, body: 'x', bodyExpression: 'nothing', headers: { 'Content-Length': '"1"' } }),
    ).toEqual(['bodyExpression', 'bodyExpression', 'headers.Content-Length'])
  })
})
