import { chatRoutes } from '../pages/chat/routes.ts'
import { llmRoutes } from '../pages/llm/routes.ts'
import { mcpRoutes } from '../pages/mcp/routes.ts'
import { observeRoutes } from '../pages/observe/routes.ts'
import { overviewRoutes } from '../pages/overview/routes.ts'
import { policyRoutes } from '../pages/policies/routes.ts'
import { resourceRoutes } from '../pages/resources/routes.ts'
import { settingsRoutes } from '../pages/settings/routes.ts'
import { startRoutes } from '../pages/start/routes.ts'
import { toolsRoutes } from '../pages/tools/routes.ts'
import { trafficRoutes } from '../pages/traffic/routes.ts'
import type { PageRoute } from './page-route.ts'

/** All pages of the console. */
export const pageRoutes: readonly PageRoute[] = [
  ...overviewRoutes,
  ...startRoutes,
  ...observeRoutes,
  ...llmRoutes,
  ...chatRoutes,
  ...mcpRoutes,
  ...trafficRoutes,
  ...toolsRoutes,
  ...settingsRoutes,
  ...policyRoutes,
  ...resourceRoutes,
]
