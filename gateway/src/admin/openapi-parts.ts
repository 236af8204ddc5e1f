import type { OpenApiPart } from '../resources/api/openapi-part.ts'
import { budgetsOpenApi } from './budgets.ts'
import { celOpenApi } from './cel/openapi.ts'
import { costsOpenApi } from './costs/openapi.ts'
import { forwardOpenApi } from './forward/forward.ts'
import { guardsTestOpenApi } from './inspection/guards-test.ts'
import { routesExplainOpenApi } from './inspection/routes-explain.ts'
import { keysOpenApi } from './keys/openapi.ts'
import { limitsOpenApi } from './limits.ts'
import { logsOpenApi } from './logs/openapi.ts'
import { mcpOpenApi } from './mcp/mcp.ts'
import { requestsOpenApi } from './requests.ts'
import { liveOpenApi } from './state/live.ts'
import { stateOpenApi } from './state/state.ts'
import { usageOpenApi } from './usage.ts'
import { whoamiOpenApi } from './whoami/whoami.ts'

/** OpenAPI of the endpoints of the admin API beside the config resource API. */
export const openApiParts: readonly OpenApiPart[] = [
  whoamiOpenApi,
  keysOpenApi,
  celOpenApi,
  guardsTestOpenApi,
  routesExplainOpenApi,
  limitsOpenApi,
  budgetsOpenApi,
  logsOpenApi,
  usageOpenApi,
  costsOpenApi,
  requestsOpenApi,
  forwardOpenApi,
  stateOpenApi,
  liveOpenApi,
  mcpOpenApi,
]
