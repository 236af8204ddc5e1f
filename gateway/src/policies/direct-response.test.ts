import { describe, expect, it } from 'vitest'
import { fixtureExchange, textOf, throughPolicies } from '../../test/fixtures/pipeline.ts'
import { checkDirectResponse, compileDirectResponse, type DirectResponseConfig } from './direct-response.ts'

function mistakes(config: DirectResponseConfig): string[] {
  const found: string[] = []
  checkDirectResponse(config, (path) => found.push(path.join('.')))
  return found
}

describe('a direct response', () => {
  it('is the configured text, for every request', () => {
    const policy = compileDirectResponse({ status: 418, body: 'täxt' })
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const reply = throughPolicies([policy], fixtureExchange({ method }))
      expect(reply.status).toBe(418)
      expect(reply.headers).toEqual({ 'content-type': 'text/plain; charset=utf-8' })
      expect(textOf(reply)).toBe('täxt')
    }
  })

  it('may have no body', () => {
    const reply = throughPolicies([compileDirectResponse({ status: 204 })], fixtureExchange())
    expect(reply).toEqual({ status: 204, headers: {}, body: undefined })
  })

  it('is independent of earlier replies', () => {
    const policy = compileDirectResponse({ status: 200, body: 'x' })
    const first = throughPolicies([policy], fixtureExchange())
    first.headers['x-a'] = '1'
    expect(throughPolicies([policy], fixtureExchange()).headers).not.toHaveProperty('x-a')
  })

  it('has no body where its status allows none', () => {
    expect(mistakes({ status: 204, body: 'x' })).toEqual(['body'])
    expect(mistakes({ status: 204, body: '' })).toEqual([])
    expect(mistakes({ status: 404, body: 'x' })).toEqual([])
  })
})
