import type { PageRoute } from '../../app/page-route.ts'

export const observeRoutes: readonly PageRoute[] = [
  { path: '/requests', load: () => import('./requests/requests.tsx') },
  { path: '/requests/:id', load: () => import('./request/request.tsx') },
  { path: '/usage', load: () => import('./usage/usage.tsx') },
  { path: '/budgets', load: () => import('./budgets/budgets.tsx') },
  { path: '/limits', load: () => import('./limits/limits.tsx') },
]
