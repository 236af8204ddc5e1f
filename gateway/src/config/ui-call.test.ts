import { describe, expect, it } from 'vitest'
import { isUiChange } from './ui-call.ts'

const changes = (method: string, path: string, query = '') => isUiChange({ method, path, query })

describe('a call of the admin API', () => {
  it.each([
    ['PUT', '/api/config/resources/llm.model'],
    ['DELETE', '/api/config/resources/llm.model/a'],
    ['POST', '/api/keys'],
    ['POST', '/api/config/history/7/revert'],
    ['PATCH', '/api/unknown'],
    ['POST', '/api/cel/check/x'],
    ['POST', '/api/forward'],
  ])('with %s %s is a change', (method, path) => expect(changes(method, path)).toBe(true))

  it.each([
    ['GET', '/ui'],
    ['HEAD', '/api/keys'],
    ['POST', '/api/cel/check'],
    ['POST', '/api/routes/explain'],
    ['POST', '/api/logs/search'],
    ['POST', '/api/logs/get'],
    ['POST', '/api/logs/tail'],
    ['POST', '/api/logs/analytics/summary'],
    ['POST', '/api/forward/default/v1/chat/completions'],
    ['DELETE', '/api/forward/default/mcp'],
  ])('with %s %s is none', (method, path) => expect(changes(method, path)).toBe(false))

  it('that reveals secrets is a change', () => {
    const path = '/api/config/resources/llm.model'
    expect(changes('GET', path, '?reveal=true')).toBe(true)
    expect(changes('GET', path, '?limit=1&%72eveal=true')).toBe(true)
    expect(changes('GET', path, '?name=reveal')).toBe(false)
    expect(changes('GET', '/api/config/file')).toBe(true)
  })
})
