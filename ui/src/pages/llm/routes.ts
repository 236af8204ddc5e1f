import type { PageRoute } from '../../app/page-route.ts'

export const llmRoutes: readonly PageRoute[] = [
  { path: '/llm/keys', load: () => import('./keys/keys-page.tsx') },
  { path: '/llm/keys/new', load: () => import('./keys/new-key-page.tsx') },
  { path: '/llm/keys/:id/edit', load: () => import('./keys/edit-key-page.tsx') },
  { path: '/llm/keys/:id', load: () => import('./keys/key-page.tsx') },
]
