/**
 * Claude Code: `env` and `apiKeyHelper` of the user's settings. The helper is a shell command whose output is sent as
 * `Authorization` and `x-api-key`, so that the settings hold no secret. Claude Code asks several models by itself, for
 * small tasks too, so each class of models gets a name that the token may use. Sources:
 * https://code.claude.com/docs/en/llm-gateway-connect, https://code.claude.com/docs/en/settings, and a run of
 * `@anthropic-ai/claude-code` 2.1.330.
 */
import { exportedToken, json, type Recipe, shellWord, tokenVariable } from './recipe.ts'

export const claudeCode: Recipe = {
  name: 'claude-code',
  title: 'Claude Code',
  speaks: 'messages',
  setup(connection) {
    const { gatewayUrl, models, tokenFile } = connection
    const [main, small] = [models[0], models.at(-1)]
    const named =
      main === undefined
        ? {}
        : {
            ANTHROPIC_MODEL: main,
            ANTHROPIC_DEFAULT_OPUS_MODEL: main,
            ANTHROPIC_DEFAULT_SONNET_MODEL: main,
            ANTHROPIC_DEFAULT_HAIKU_MODEL: small,
          }
    const settings = {
      apiKeyHelper: tokenFile === null ? `printenv ${tokenVariable}` : `cat ${shellWord(tokenFile)}`,
      env: { ANTHROPIC_BASE_URL: gatewayUrl, ...named },
    }
    return {
      environment: exportedToken(connection),
      files: [
        {
          path: '.claude/settings.json',
          movedBy: { variable: 'CLAUDE_CONFIG_DIR', from: '.claude' },
          text: json(settings),
          removes: [
            ['env', 'ANTHROPIC_AUTH_TOKEN'],
            ['env', 'ANTHROPIC_API_KEY'],
          ],
        },
      ],
      snippets: [],
      steps: [
        'Unset ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN in the shell: they go before the helper. Start claude; /status names the address.',
      ],
    }
  },
  signIn: {
    clientId: 'claude-code',
    setup(gatewayUrl) {
      const text = json({ forceLoginMethod: 'gateway', forceLoginGatewayUrl: gatewayUrl })
      return {
        files: managedFiles.map(([platform, path]) => ({ platform, path, text })),
        steps: [
          'Add these members to the managed settings file of each machine; it belongs to the administrator.',
          'Each developer starts claude, or enters /login, and approves in the browser.',
        ],
      }
    },
  },
}

/** https://code.claude.com/docs/en/settings, "Settings files". */
const managedFiles = [
  ['Linux', '/etc/claude-code/managed-settings.json'],
  ['macOS', '/Library/Application Support/ClaudeCode/managed-settings.json'],
  ['Windows', 'C:\\Program Files\\ClaudeCode\\managed-settings.json'],
] as const
