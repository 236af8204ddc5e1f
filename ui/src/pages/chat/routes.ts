import type { PageRoute } from '../../app/page-route.ts'

export const chatRoutes: readonly PageRoute[] = [{ path: '/chat', load: () => import('./chat-page.tsx') }]
