import type { PageRoute } from '../../app/page-route.ts'

export const toolsRoutes: readonly PageRoute[] = []
