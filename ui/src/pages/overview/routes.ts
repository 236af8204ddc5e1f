import type { PageRoute } from '../../app/page-route.ts'

export const overviewRoutes: readonly PageRoute[] = []
