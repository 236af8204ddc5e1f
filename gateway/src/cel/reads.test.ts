import { describe, expect, it } from 'vitest'
import { readsField } from './reads.ts'

describe('reading a field', () => {
  it.each([
    'mcp.method == "a"',
    'mcp["method"] == "a"',
    'has(mcp.method)',
    'jwt.roles.exists(role, role == mcp.method)',
    '[1, {"a": mcp.method}].size() > 1 ? true : false',
    'mcp.method.startsWith("a")',
  ])('is seen in %s', (source) => {
    expect(readsField(source, 'mcp', 'method')).toBe(true)
  })

  it.each([
    'mcp.tool.method == "a"',
    'jwt.method == "mcp.method"',
    'mcp == 1',
    'request.method == "a"',
    '1 +',
  ])('is not seen in %s', (source) => {
    expect(readsField(source, 'mcp', 'method')).toBe(false)
  })
})
