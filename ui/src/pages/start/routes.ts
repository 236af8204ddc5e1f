import type { PageRoute } from '../../app/page-route.ts'

export const startRoutes: readonly PageRoute[] = [
  { path: '/start', load: () => import('./start-page.tsx') },
  { path: '/clients', load: () => import('../clients/clients-page.tsx') },
]
