import type { PageRoute } from '../../app/page-route.ts'

export const trafficRoutes: readonly PageRoute[] = [
  { path: '/traffic/gateways', load: () => import('./gateways-page.tsx') },
  { path: '/traffic/gateways/:id', load: () => import('./gateway-page.tsx') },
  { path: '/traffic/routes', load: () => import('./routes-page.tsx') },
  { path: '/traffic/routes/:id', load: () => import('./route-page.tsx') },
  { path: '/traffic/tcp-routes', load: () => import('./tcp-routes-page.tsx') },
  { path: '/traffic/tcp-routes/:id', load: () => import('./tcp-route-page.tsx') },
  { path: '/traffic/explain', load: () => import('./explain/explain-page.tsx') },
]
