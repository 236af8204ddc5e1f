import type { PageRoute } from '../../app/page-route.ts'

export const mcpRoutes: readonly PageRoute[] = [
  { path: '/mcp/servers', load: () => import('./servers/servers-page.tsx') },
  { path: '/mcp/servers/new', load: () => import('./servers/editor-page.tsx') },
  { path: '/mcp/servers/:id', load: () => import('./servers/server-page.tsx') },
  { path: '/mcp/servers/:id/settings', load: () => import('./servers/editor-page.tsx') },
  { path: '/mcp/access', load: () => import('./access/access-page.tsx') },
  { path: '/mcp/settings', load: () => import('./settings-page.tsx') },
  { path: '/mcp/playground', load: () => import('./playground/playground-page.tsx') },
]
