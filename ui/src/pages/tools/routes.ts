import type { PageRoute } from '../../app/page-route.ts'

export const toolsRoutes: readonly PageRoute[] = [
  { path: '/tools/cel', load: () => import('./cel/cel-page.tsx') },
  { path: '/tools/configuration', load: () => import('./configuration/configuration-page.tsx') },
  { path: '/tools/history', load: () => import('./history/history-page.tsx') },
]
