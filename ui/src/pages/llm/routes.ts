import type { PageRoute } from '../../app/page-route.ts'

export const llmRoutes: readonly PageRoute[] = []
