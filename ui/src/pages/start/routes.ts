import type { PageRoute } from '../../app/page-route.ts'

export const startRoutes: readonly PageRoute[] = []
