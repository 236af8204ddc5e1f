import type { PageRoute } from '../../app/page-route.ts'

export const settingsRoutes: readonly PageRoute[] = []
