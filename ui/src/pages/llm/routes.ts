import type { PageRoute } from '../../app/page-route.ts'

export const llmRoutes: readonly PageRoute[] = [
  { path: '/llm/models', load: () => import('./models/models-page.tsx') },
  { path: '/llm/models/:id', load: () => import('./models/model-page.tsx') },
  { path: '/llm/virtual-models', load: () => import('./virtual-models/virtual-models-page.tsx') },
  { path: '/llm/virtual-models/:id', load: () => import('./virtual-models/virtual-model-page.tsx') },
  { path: '/llm/providers', load: () => import('./providers/providers-page.tsx') },
  { path: '/llm/providers/:id', load: () => import('./providers/provider-page.tsx') },
  { path: '/llm/keys', load: () => import('./keys/keys-page.tsx') },
  { path: '/llm/keys/new', load: () => import('./keys/new-key-page.tsx') },
  { path: '/llm/keys/:id/edit', load: () => import('./keys/edit-key-page.tsx') },
  { path: '/llm/keys/:id', load: () => import('./keys/key-page.tsx') },
  { path: '/llm/guards', load: () => import('./guards/guards-page.tsx') },
  { path: '/llm/costs', load: () => import('./costs/costs-page.tsx') },
]
