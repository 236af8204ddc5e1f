import type { PageRoute } from '../../app/page-route.ts'

export const resourceRoutes: readonly PageRoute[] = [
  { path: '/resources/:kind', load: () => import('./list-page.tsx') },
  { path: '/resources/:kind/:id', load: () => import('./editor-page.tsx') },
]
