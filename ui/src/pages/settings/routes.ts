import type { PageRoute } from '../../app/page-route.ts'

export const settingsRoutes: readonly PageRoute[] = [
  { path: '/settings', load: () => import('./settings-page.tsx') },
  { path: '/settings/policies/:name', load: () => import('./console-policy.tsx') },
]
