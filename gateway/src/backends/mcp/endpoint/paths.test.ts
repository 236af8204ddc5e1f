import { expect, it } from 'vitest'
import { documentPaths, mcpPaths } from './paths.ts'

it('puts the path of an endpoint behind the names of its documents', () => {
  expect(documentPaths('/a/mcp')).toEqual([
    '/.well-known/oauth-protected-resource/a/mcp',
    '/.well-known/oauth-authorization-server/a/mcp',
    '/.well-known/openid-configuration/a/mcp',
  ])
})

it('uses only MCP paths of a shared gateway', () => {
  expect(mcpPaths).toContain('/mcp')
  expect(mcpPaths).toContain('/sse')
  expect(mcpPaths).toContain('/.well-known/oauth-protected-resource')
  expect(mcpPaths).not.toContain('/')
})
