import type { OpenApiPart } from '../resources/api/openapi-part.ts'
import { budgetsOpenApi } from './budgets.ts'
import { limitsOpenApi } from './limits.ts'

/** OpenAPI of the endpoints of the admin API beside the config resource API. */
export const openApiParts: readonly OpenApiPart[] = [limitsOpenApi, budgetsOpenApi]
