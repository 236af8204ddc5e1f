import type { PageRoute } from '../../app/page-route.ts'

export const policyRoutes: readonly PageRoute[] = [
  { path: '/llm/policies', load: () => import('./llm-policies.tsx') },
  { path: '/llm/policies/:name', load: () => import('./llm-policy.tsx') },
  { path: '/mcp/policies', load: () => import('./mcp-policies.tsx') },
  { path: '/mcp/policies/:name', load: () => import('./mcp-policy.tsx') },
]
