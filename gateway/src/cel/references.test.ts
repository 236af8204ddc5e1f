import { describe, expect, it } from 'vitest'
import { comparesField, referencesField, referencesVariable } from './references.ts'

describe('referencesField', () => {
  it.each([
    'mcp.method == "a"',
    'mcp["method"] == "a"',
    'has(mcp.method)',
    'jwt.roles.exists(role, role == mcp.method)',
    '[1, {"a": mcp.method}].size() > 1 ? true : false',
    'mcp.method.startsWith("a")',
  ])('finds the field in %s', (source) => {
    expect(referencesField(source, 'mcp', 'method')).toBe(true)
  })

  it.each([
    'mcp.tool.method == "a"',
    'jwt.method == "mcp.method"',
    'mcp == 1',
    'request.method == "a"',
    '1 +',
  ])('finds no field in %s', (source) => {
    expect(referencesField(source, 'mcp', 'method')).toBe(false)
  })
})

describe('comparesField', () => {
  it.each([
    'request.path == "/a"',
    '"/a" != request.path',
    'request["path"] == "/a"',
    'request.path in ["/a", "/b"]',
    'jwt.ok && !request.path.startsWith("/a")',
  ])('finds the field in %s', (source) => {
    expect(comparesField(source, 'request', 'path')).toBe(true)
  })

  it.each([
    'request.path.endsWith("/a")',
    'request.method == "GET"',
    '"request.path" == "x"',
    'has(request.path)',
  ])('finds no field in %s', (source) => {
    expect(comparesField(source, 'request', 'path')).toBe(false)
  })
})

describe('referencesVariable', () => {
  it('finds a variable at any position, except in texts and fields', () => {
    expect(referencesVariable('[1].exists(x, x == 1 && has(jwt.sub))', 'jwt')).toBe(true)
    expect(referencesVariable('request.headers.jwt == "jwt"', 'jwt')).toBe(false)
    expect(referencesVariable('jwt.', 'jwt')).toBe(false)
  })
})
