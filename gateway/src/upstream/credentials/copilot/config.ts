import { object } from '../../../schema/dsl.ts'

/** `backendAuth.copilot`. */
export const copilotAuthSchema = object(
  {},
  {
    doc: 'The token of GitHub Copilot: `GH_COPILOT_TOKEN` or `COPILOT_GITHUB_TOKEN` of the environment, else the login of an editor with Copilot, else that of the GitHub CLI.',
  },
)
