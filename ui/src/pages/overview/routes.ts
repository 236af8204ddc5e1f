import type { PageRoute } from '../../app/page-route.ts'

export const overviewRoutes: readonly PageRoute[] = [{ path: '/', load: () => import('./overview.tsx') }]
